// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent_fused.cuh's products of fp32 by fused multiply-adds, never tf32. Four lanes share a
// unit: each sums every fourth 16 bytes of k for all eight sequences, then they reduce and keep the
// sums of two sequences each.
#include "kernels/recurrent/recurrent_fused.cuh"

namespace wide::kernels {

namespace {

struct RecurrentSingleProduct {
  using Element = float;
  static constexpr int kRows = 8, kElements = 2, kColumns = 1;

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int row(int e) { return lane() % 4 + 4 * e; }
  __device__ static int column(int) { return lane() / 4; }

  /// sums += h W^T; the warp's rows of `weights` are ordered by gate.
  template <int kGates>
  __device__ static void multiply(float (&sums)[kGates][kElements], const char* weights,
                                  const char* states, const RecurrentFusedShape& shape, int hidden,
                                  int count) {
    const char* of_unit = weights + lane() / 4 * shape.pitch + lane() % 4 * kChunkBytes;
    const char* of_rows = states + lane() % 4 * kChunkBytes;
    const int gate_bytes = kRecurrentUnits * shape.pitch;
    float parts[kGates][kRows] = {};
#pragma unroll 1
    for (int byte = 0; byte < hidden * 4; byte += 4 * kChunkBytes) {
      Vec16<float> weight[kGates];
#pragma unroll
      for (int g = 0; g < kGates; ++g) {
        weight[g] = load_vec16(reinterpret_cast<const float*>(of_unit + g * gate_bytes + byte));
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        // Asked at powers of two, so that loads of several rows are in flight.
        if ((r & (r - 1)) == 0 && r >= count) break;
        const auto h = load_vec16(reinterpret_cast<const float*>(of_rows + r * shape.pitch + byte));
#pragma unroll
        for (int g = 0; g < kGates; ++g) {
#pragma unroll
          for (int k = 0; k < Vec16<float>::kSize; ++k) {
            parts[g][r] = fmaf(h.v[k], weight[g].v[k], parts[g][r]);
          }
        }
      }
    }
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
      float kept[kRows / 2], own[kElements];
      halve<2>(parts[g], kept);
      halve<1>(kept, own);
#pragma unroll
      for (int e = 0; e < kElements; ++e) sums[g][e] += own[e];
    }
  }

  /// Two lanes, `distance` apart, reduce: each keeps the values of its parity in that bit.
  template <int distance, int count>
  __device__ static void halve(const float (&values)[count], float (&kept)[count / 2]) {
    const bool is_upper = lane() / distance % 2 != 0;
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      // Row r ends up in lane r % 4: this picks one of two neighbours in r's bit.
      const int lower = i / distance * 2 * distance + i % distance, upper = lower + distance;
      const float mine = is_upper ? values[upper] : values[lower];
      const float other = is_upper ? values[lower] : values[upper];
      kept[i] = mine + __shfl_xor_sync(0xffffffffu, other, distance);
    }
  }
};

}  // namespace

cudaError_t launch_recurrent_fused_fp32(const RecurrentFusedParams& params, cudaStream_t stream) {
  return launch_recurrent<RecurrentSingleProduct>(params, stream);
}

}  // namespace wide::kernels
