// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on quantised weights: linear_weight_only.cuh's tiles of 16 rows and of 64 in one
// kernel.
#include <algorithm>

#include "kernels/linear/linear_weight_only.cuh"
#include "kernels/linear/routed_linear_launch.cuh"

namespace wide::kernels {

namespace {

constexpr auto kShort = LinearWeightOnlyTile::m16n64, kTall = LinearWeightOnlyTile::m64n64;
constexpr int kThreads = policy_of(kTall).mma.threads();
static_assert(policy_of(kShort).mma.threads() == kThreads && tile_m(kShort) == kRoutedShortTile &&
              tile_m(kTall) == kRoutedTile && tile_n(kShort) == kRoutedTileN &&
              tile_n(kTall) == kRoutedTileN);

template <WeightFormat format>
constexpr int kTileBytes = std::max(policy_of(kShort).shared_bytes(format),
                                    policy_of(kTall).shared_bytes(format));

/// A member of few rows has one block for each tile of outputs, which alone reads that weight.
template <class T, WeightFormat format>
__global__ void __launch_bounds__(kThreads, policy_of(kTall).mma.blocks_per_multiprocessor)
    routed_linear_weight_only(const __grid_constant__ RoutedWeightOnlyParams params,
                              uint32_t num_slots, uint32_t tiles_n) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_routed_tile<T, kThreads>(
      params, num_slots, tiles_n, *reinterpret_cast<RoutedTable*>(shared + kTileBytes<format>),
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_weight_only_tile<T, format, kShort>(params.linear, params.strips, member, 0,
                                                    first_n, true, shared, rows);
      },
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_weight_only_tile<T, format, kTall>(params.linear, params.strips, member, 0, first_n,
                                                   false, shared, rows);
      });
}

template <class T>
cudaError_t launch_element(const RoutedWeightOnlyParams& params, WeightFormat format,
                           cudaStream_t stream) {
  return with_format(format, [&]<WeightFormat kFormat>() {
    return launch_routed(routed_linear_weight_only<T, kFormat>, params, sizeof(T), kThreads,
                         kTileBytes<kFormat>, stream);
  });
}

}  // namespace

cudaError_t launch_routed_linear_weight_only(const RoutedWeightOnlyParams& params, Dtype dtype,
                                             WeightFormat format, cudaStream_t stream) {
  if (dtype == Dtype::fp16) return launch_element<__half>(params, format, stream);
  if (dtype == Dtype::bf16) return launch_element<__nv_bfloat16>(params, format, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
