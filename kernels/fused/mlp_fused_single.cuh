// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused.cuh for fp32 elements: activations between layers alternate between two buffers of the
// warp in shared memory. Registers would not hold 256 features of 16 rows.
#pragma once

#include "kernels/fused/mlp_fused.cuh"

namespace wide::kernels {

/// Shared by both kinds of products.
class MlpSingleRows {
 public:
  using Element = float;
  static constexpr int kBuffers = 2;

  __device__ void take(char* buffer, const MlpFusedShape& shape, const MlpFusedLayer&) {
    now_ = buffer;
    next_ = buffer + shape.buffer_bytes;
    pitch_ = shape.pitch;
  }
  /// Makes the lanes' outputs visible to the whole warp; their inputs' buffer is free then.
  __device__ void finish_layer(const MlpFusedLayer&) {
    __syncwarp();
    char* done = now_;
    now_ = next_;
    next_ = done;
  }
  __device__ const char* put(char*, const MlpFusedShape&, const MlpFusedLayer&) const {
    return now_;
  }

 protected:
  __device__ static int lane_of() { return static_cast<int>(threadIdx.x % 32); }
  /// The row's float: one of the layer's `out` features, or of the zeros after them.
  __device__ float* output(int row, int column) const {
    return reinterpret_cast<float*>(next_ + row * pitch_) + column;
  }
  /// A strip's outputs, padded with zeros for the next layer's k: a multiple of 8.
  __device__ static int filled(int outputs) { return (outputs + 7) / 8 * 8; }

  char *now_ = nullptr, *next_ = nullptr;
  int pitch_ = 0;
};

}  // namespace wide::kernels
