// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on warp-level matrix instructions: linear_mma.cuh's tiles of 16 rows and of 64 in one
// kernel, as ragged_linear_tensor_core.cu has them.
#include "kernels/linear/linear_mma.cuh"
#include "kernels/linear/routed_linear_launch.cuh"
#include "kernels/linear/tile_pair.hpp"

namespace wide::kernels {

namespace {

using Tiles = TilePair<LinearMmaTile::m16n64, LinearMmaTile::m64n64>;
static_assert(Tiles::are_of(kRoutedShortTile, kRoutedTile, kRoutedTileN));

template <class Math>
__global__ void __launch_bounds__(Tiles::kThreads,
                                  policy_of(Tiles::kTall).blocks_per_multiprocessor)
    routed_linear_tensor_core(const __grid_constant__ RoutedLinearParams params, uint32_t num_slots,
                              uint32_t tiles_n) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_routed_tile<typename Math::Element, Tiles::kThreads>(
      params, num_slots, tiles_n, *reinterpret_cast<RoutedTable*>(shared + Tiles::kSharedBytes),
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_mma_tile<Math, Tiles::kShort>(params.linear, member, 0, first_n, shared, 0, rows);
      },
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_mma_tile<Math, Tiles::kTall>(params.linear, member, 0, first_n, shared, 0, rows);
      });
}

}  // namespace

cudaError_t launch_routed_linear_tensor_core(const RoutedLinearParams& params, LinearMath math,
                                             cudaStream_t stream) {
  return with_plain_math(math, [&]<class Math>() {
    return launch_routed(routed_linear_tensor_core<Math>, params, sizeof(typename Math::Element),
                         Tiles::kThreads, Tiles::kSharedBytes, stream);
  });
}

}  // namespace wide::kernels
