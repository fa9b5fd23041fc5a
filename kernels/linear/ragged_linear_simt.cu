// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members of different shapes on the fp32 units: linear_simt.cuh's tiles of 16 and of 64 rows in
// one kernel; all of a block takes the same one.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_simt.cuh"
#include "kernels/linear/ragged_linear_launch.cuh"
#include "kernels/linear/tile_pair.hpp"

namespace wide::kernels {

namespace {

using Tiles = TilePair<LinearSimtTile::m16n64, LinearSimtTile::m64n64>;
static_assert(Tiles::are_of(kRaggedShortTile, kRaggedTallTile, kRaggedTileN));
// Four, as linear's, would leave no registers for what is not the same for all blocks here; three
// have 90 KiB on their way to a multiprocessor, more than its share of the memory's rate asks for.
constexpr int kBlocksPerMultiprocessor = 3;

template <class T>
__global__ void __launch_bounds__(Tiles::kThreads, kBlocksPerMultiprocessor)
    ragged_linear_simt(const __grid_constant__ RaggedLinearParams params) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_ragged_tile<T>(
      params,
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_simt_tile<T, T, Tiles::kShort>(member, 0, first_m, first_n, shared);
      },
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_simt_tile<T, T, Tiles::kTall>(member, 0, first_m, first_n, shared);
      });
}

}  // namespace

cudaError_t launch_ragged_linear_simt(const RaggedLinearParams& params, Dtype dtype,
                                      cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_ragged(ragged_linear_simt<T>, params, sizeof(T), Tiles::kThreads,
                         Tiles::kSharedBytes, stream);
  });
}

}  // namespace wide::kernels
