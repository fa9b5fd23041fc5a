// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused.cuh for fp32 elements: what lies between layers is in two buffers of the warp's own in
// shared memory, which take turns. Registers would not hold 256 features of 16 rows.
#pragma once

#include "kernels/fused/mlp_fused.cuh"

namespace wide::kernels {

/// What both kinds of products have in common.
class MlpSingleRows {
 public:
  using Element = float;
  static constexpr int kBuffers = 2;

  __device__ void take(char* buffer, const MlpFusedShape& shape, const MlpFusedLayer&) {
    now_ = buffer;
    next_ = buffer + shape.buffer_bytes;
    pitch_ = shape.pitch;
  }
  /// The lanes' outputs are there for all of the warp, and their inputs' place is free.
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
  /// The row's float; of the layer's `out` features, and the zeros behind them.
  __device__ float* output(int row, int column) const {
    return reinterpret_cast<float*>(next_ + row * pitch_) + column;
  }
  /// Of a strip, with the zeros that the next layer's k is filled up with: a multiple of 8.
  __device__ static int filled(int outputs) { return (outputs + 7) / 8 * 8; }

  char *now_ = nullptr, *next_ = nullptr;
  int pitch_ = 0;
};

}  // namespace wide::kernels
