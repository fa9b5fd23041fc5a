// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on warp-level matrix instructions: linear_mma.cuh's tiles of 16 rows and of 64 in one
// kernel, as ragged_linear_tensor_core.cu has them. Not by wgmma: its operands come by tensor maps,
// which copy boxes of rows that are neighbours.
#include <algorithm>

#include "kernels/linear/linear_mma.cuh"
#include "kernels/linear/routed_linear_launch.cuh"

namespace wide::kernels {

namespace {

constexpr LinearMmaTile kShort = LinearMmaTile::m16n64, kTall = LinearMmaTile::m64n64;
constexpr int kThreads = policy_of(kTall).threads();
constexpr int kTileBytes =
    std::max(policy_of(kShort).shared_bytes(), policy_of(kTall).shared_bytes());
static_assert(policy_of(kShort).threads() == kThreads && tile_m(kShort) == kRoutedShortTile &&
              tile_m(kTall) == kRoutedTile && tile_n(kShort) == kRoutedTileN &&
              tile_n(kTall) == kRoutedTileN);

template <class Math>
__global__ void __launch_bounds__(kThreads, policy_of(kTall).blocks_per_multiprocessor)
    routed_linear_tensor_core(const __grid_constant__ RoutedLinearParams params, uint32_t num_slots,
                              uint32_t tiles_n) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_routed_tile<typename Math::Element, kThreads>(
      params, num_slots, tiles_n, *reinterpret_cast<RoutedTable*>(shared + kTileBytes),
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_mma_tile<Math, kShort>(params.linear, member, 0, first_n, shared, 0, rows);
      },
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_mma_tile<Math, kTall>(params.linear, member, 0, first_n, shared, 0, rows);
      });
}

template <class Math>
cudaError_t launch_math(const RoutedLinearParams& params, cudaStream_t stream) {
  return launch_routed(routed_linear_tensor_core<Math>, params, sizeof(typename Math::Element),
                       kThreads, kTileBytes, stream);
}

}  // namespace

cudaError_t launch_routed_linear_tensor_core(const RoutedLinearParams& params, LinearMath math,
                                             cudaStream_t stream) {
  switch (math) {
    case LinearMath::fp16:
      return launch_math<MmaHalf<__half>>(params, stream);
    case LinearMath::bf16:
      return launch_math<MmaHalf<__nv_bfloat16>>(params, stream);
    case LinearMath::tf32:
      return launch_math<MmaTf32>(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace wide::kernels
