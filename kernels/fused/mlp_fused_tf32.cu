// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused_single.cuh on tensor cores, operands rounded to tf32 (mma.sync m16n8k8).
#include "kernels/arch/matrix.cuh"
#include "kernels/fused/mlp_fused_single.cuh"

namespace wide::kernels {

namespace {

class MlpTf32Rows : public MlpSingleRows {
 public:
  static constexpr int kRows = 16;
  // In one kernel, registers would leave room for four blocks a multiprocessor instead of five.
  static constexpr bool kHasRoutedKernel = true;

  __device__ void multiply(const MlpStripOf& strip, int index) {
    constexpr int kPairs = kMlpStrip / 16;
    const int lane = lane_of();
    float sums[kMlpBlocksOf8][4];
    begin_sums<float>(strip, lane, sums);
    const char* weights[kPairs];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) weights[pair] = b_weights(strip, pair, lane);
    const char* rows = now_ + lane % 16 * pitch_ + lane / 16 * kChunkBytes;
#pragma unroll 2
    for (int byte = 0; byte < strip.layer.in * 4; byte += 2 * kChunkBytes) {
      uint32_t a[4];
      arch::ldmatrix(a, rows + byte);
#pragma unroll
      for (uint32_t& value : a) value = arch::to_tf32(value);
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        uint32_t b[4];
        arch::ldmatrix(b, weights[pair] + byte);
#pragma unroll
        for (uint32_t& value : b) value = arch::to_tf32(value);
        arch::mma_m16n8k8_tf32(sums[2 * pair], a, {b[0], b[1]});
        arch::mma_m16n8k8_tf32(sums[2 * pair + 1], a, {b[2], b[3]});
      }
    }
    for_each_in_turn(sums, [&](float(&some)[4], int n) {
      const int first = 8 * n + lane % 4 * 2;
      with_activation(strip.activation, [&]<Activation fixed>() {
#pragma unroll
        for (float& sum : some) sum = activate<fixed>(sum);
      });
      if (8 * n >= strip.outputs) return;
      if (strip.gates != nullptr) {
#pragma unroll
        for (int e = 0; e < 4; ++e) some[e] *= strip.gates[lane / 4 + e / 2 * 8];
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float2*>(output(lane / 4 + 8 * half, index * kMlpStrip + first)) =
            make_float2(first < strip.outputs ? some[2 * half] : 0.0f,
                        first + 1 < strip.outputs ? some[2 * half + 1] : 0.0f);
      }
    });
  }
};

}  // namespace

cudaError_t launch_mlp_fused_tf32(const MlpFusedParams& params, cudaStream_t stream) {
  return launch_mlp<MlpTf32Rows>(params, stream);
}

}  // namespace wide::kernels
