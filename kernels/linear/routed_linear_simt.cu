// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on the fp32 units: linear_simt.cuh's tiles of 16 and of 64 rows in one kernel, as
// ragged_linear_simt.cu has them.
#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_simt.cuh"
#include "kernels/linear/routed_linear_launch.cuh"
#include "kernels/linear/tile_pair.hpp"

namespace wide::kernels {

namespace {

using Tiles = TilePair<LinearSimtTile::m16n64, LinearSimtTile::m64n64>;
static_assert(Tiles::are_of(kRoutedShortTile, kRoutedTile, kRoutedTileN));
// As ragged_linear_simt's, whose sums and places a thread has, too.
constexpr int kBlocksPerMultiprocessor = 3;

template <class T>
__global__ void __launch_bounds__(Tiles::kThreads, kBlocksPerMultiprocessor)
    routed_linear_simt(const __grid_constant__ RoutedLinearParams params, uint32_t num_slots,
                       uint32_t tiles_n) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_routed_tile<T, Tiles::kThreads>(
      params, num_slots, tiles_n, *reinterpret_cast<RoutedTable*>(shared + Tiles::kSharedBytes),
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_simt_tile<T, T, Tiles::kShort>(params.linear, member, 0, first_n, shared, rows);
      },
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_simt_tile<T, T, Tiles::kTall>(params.linear, member, 0, first_n, shared, rows);
      });
}

}  // namespace

cudaError_t launch_routed_linear_simt(const RoutedLinearParams& params, Dtype dtype,
                                      cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_routed(routed_linear_simt<T>, params, sizeof(T), Tiles::kThreads,
                         Tiles::kSharedBytes, stream);
  });
}

}  // namespace wide::kernels
