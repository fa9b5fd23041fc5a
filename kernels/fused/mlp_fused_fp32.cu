// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused_single.cuh by fused multiply-adds in fp32, never tf32. A lane has two outputs of a
// strip, lane and lane + 32, of all eight rows: it reads four k of a weight at a time, eight lanes
// in different banks, and x as a broadcast.
#include "kernels/fused/mlp_fused_single.cuh"

namespace wide::kernels {

namespace {

class MlpSimtRows : public MlpSingleRows {
 public:
  static constexpr int kRows = 8;
  static constexpr bool kHasRoutedKernel = false;

  __device__ void multiply(const MlpStripOf& strip, int index) {
    constexpr int kColumns = kMlpStrip / 32;
    const int lane = lane_of();
    float sums[kRows][kColumns];
    const char* weights[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int output = min(lane + 32 * j, strip.outputs - 1);  // past the last: unused
      weights[j] = strip.weights + output * strip.layer.row_bytes;
      const float bias =
          strip.biases == nullptr ? 0.0f : reinterpret_cast<const float*>(strip.biases)[output];
#pragma unroll
      for (int row = 0; row < kRows; ++row) sums[row][j] = bias;
    }
    for (int byte = 0; byte < strip.layer.in * 4; byte += kChunkBytes) {
      Vec16<float> weight[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        weight[j] = load_vec16(reinterpret_cast<const float*>(weights[j] + byte));
      }
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const auto x = load_vec16(reinterpret_cast<const float*>(now_ + row * pitch_ + byte));
#pragma unroll
        for (int k = 0; k < Vec16<float>::kSize; ++k) {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            sums[row][j] = fmaf(x.v[k], weight[j].v[k], sums[row][j]);
          }
        }
      }
    }
    for_each_in_turn(sums, [&](float(&some)[kColumns], int row) {
      with_activation(strip.activation, [&]<Activation fixed>() {
#pragma unroll
        for (float& sum : some) sum = activate<fixed>(sum);
      });
      if (strip.gates != nullptr) {
#pragma unroll
        for (float& sum : some) sum *= strip.gates[row];
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int column = lane + 32 * j;
        if (column >= filled(strip.outputs)) continue;
        *output(row, index * kMlpStrip + column) = column < strip.outputs ? some[j] : 0.0f;
      }
    });
  }
};

}  // namespace

cudaError_t launch_mlp_fused_fp32(const MlpFusedParams& params, cudaStream_t stream) {
  return launch_mlp<MlpSimtRows>(params, stream);
}

}  // namespace wide::kernels
