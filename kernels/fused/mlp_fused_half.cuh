// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused.cuh for 16-bit elements on tensor cores (mma.sync m16n8k16): between layers a warp's 16
// rows stay in registers. A lane's accumulators of two neighbouring blocks of eight outputs,
// rounded and packed, are its A fragment of the next layer.
#pragma once

#include "kernels/arch/matrix.cuh"
#include "kernels/common/pack_pair.cuh"
#include "kernels/fused/mlp_fused.cuh"

namespace wide::kernels {

/// Rows of up to `width` features.
template <class T, int width>
class MlpHalfRows {
 public:
  using Element = T;
  static constexpr int kRows = 16, kBuffers = 1;
  static constexpr bool kHasRoutedKernel = false;

  /// Loads x from the buffer.
  __device__ void take(const char* buffer, const MlpFusedShape& shape, const MlpFusedLayer& first) {
    const int lane = lane_of();
    const char* from = buffer + lane % 16 * shape.pitch + lane / 16 * kChunkBytes;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      if (16 * k >= first.in) break;
      arch::ldmatrix(now_[k], from + k * 2 * kChunkBytes);
    }
  }

  __device__ void multiply(const MlpStripOf& strip, int) {
    const int lane = lane_of();
    float sums[kMlpBlocksOf8][4];
    begin_sums<T>(strip, lane, sums);
    const char* weights[kPairs];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) weights[pair] = b_weights(strip, pair, lane);
    const auto step = [&](int k) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        uint32_t b[4];
        arch::ldmatrix(b, weights[pair] + k * 2 * kChunkBytes);
        arch::mma_m16n8k16<T>(sums[2 * pair], now_[k], {b[0], b[1]});
        arch::mma_m16n8k16<T>(sums[2 * pair + 1], now_[k], {b[2], b[3]});
      }
    };
    // Four steps without a branch between them, so that one's loads overlap another's products.
#pragma unroll
    for (int k = 0; k < kSteps; k += 4) {
      const int left = strip.layer.in - 16 * k;
      if (left <= 0) break;
      if (left > 48) {
#pragma unroll
        for (int i = 0; i < 4; ++i) step(k + i);
      } else {
        step(k);
        if (left > 16) step(k + 1);
        if (left > 32) step(k + 2);
      }
    }
    activate_sums(strip.activation, sums);
    if (strip.gates != nullptr) {
      const float gates[2] = {strip.gates[lane / 4], strip.gates[lane / 4 + 8]};
#pragma unroll
      for (int n = 0; n < kMlpBlocksOf8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[n][i] *= gates[i / 2];
      }
    }
    if (strip.outputs < kMlpStrip) {
      for_each_column(sums, lane, [&](float& sum, int column) {
        if (column >= strip.outputs) sum = 0.0f;
      });
    }
    push(sums);
  }

  /// Makes the pushed outputs the next layer's operand, its first strip in front.
  __device__ void finish_layer(const MlpFusedLayer& layer) {
#pragma unroll 1
    for (int strip = (layer.out - 1) / kMlpStrip + 1; strip < width / kMlpStrip; ++strip) {
      const float none[kMlpBlocksOf8][4] = {};
      push(none);
    }
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) now_[k][i] = next_[k][i];
    }
  }

  /// Writes the rows to the buffer, visible to the whole warp; returns the buffer.
  __device__ const char* put(char* buffer, const MlpFusedShape& shape, const MlpFusedLayer& last) {
    __syncwarp();  // x has been read from there
    const int lane = lane_of();
    char* to = buffer + lane / 4 * shape.pitch + lane % 4 * 4;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      if (16 * k >= last.out) break;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        *reinterpret_cast<uint32_t*>(to + i % 2 * 8 * shape.pitch + (2 * k + i / 2) * kChunkBytes) =
            now_[k][i];
      }
    }
    __syncwarp();
    return buffer;
  }

 private:
  static constexpr int kSteps = width / 16, kPairs = kMlpStrip / 16;

  __device__ static int lane_of() {
    return static_cast<int>(threadIdx.x % 32);
  }

  template <class F>
  __device__ static void for_each_column(float (&sums)[kMlpBlocksOf8][4], int lane, const F& f) {
#pragma unroll
    for (int n = 0; n < kMlpBlocksOf8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f(sums[n][i], 8 * n + lane % 4 * 2 + i % 2);
    }
  }

  __device__ static void activate_sums(Activation activation, float (&sums)[kMlpBlocksOf8][4]) {
    if (activation == Activation::none) return;
    if (activation == Activation::relu) {
      return for_each_column(sums, 0,
                             [](float& sum, int) { sum = activate<Activation::relu>(sum); });
    }
    for_each_in_turn(sums, [activation](float(&some)[4], int) {
      with_activation(activation, [&]<Activation fixed>() {
#pragma unroll
        for (float& sum : some) sum = activate<fixed>(sum);
      });
    });
  }

  /// A strip enters at the end, and the others move up: registers have no runtime index.
  __device__ void push(const float (&sums)[kMlpBlocksOf8][4]) {
#pragma unroll
    for (int k = 0; k + kPairs < kSteps; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) next_[k][i] = next_[k + kPairs][i];
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* two = &sums[2 * pair + i / 2][i % 2 * 2];
        next_[kSteps - kPairs + pair][i] = pack_pair<T>(two[0], two[1]);
      }
    }
  }

  uint32_t now_[kSteps][4] = {}, next_[kSteps][4] = {};
};

template <class T>
cudaError_t launch_mlp_half(const MlpFusedParams& params, cudaStream_t stream) {
  switch (mlp_register_width(params.net)) {
    case 64:
      return launch_mlp<MlpHalfRows<T, 64>>(params, stream);
    case 128:
      return launch_mlp<MlpHalfRows<T, 128>>(params, stream);
    default:
      return launch_mlp<MlpHalfRows<T, 256>>(params, stream);
  }
}

}  // namespace wide::kernels
