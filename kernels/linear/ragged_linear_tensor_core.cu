// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members of different shapes on warp-level matrix instructions: linear_mma.cuh's tiles of 16 rows,
// the weight on the instruction's 16-row side, and of 64, x on it, in one kernel. All of a block
// takes the same one; both are of 128 threads and of nearly as much shared memory, so that neither
// keeps a multiprocessor emptier than the other would.
#include "kernels/arch/grid.cuh"
#include "kernels/linear/linear_mma.cuh"
#include "kernels/linear/ragged_linear_launch.cuh"
#include "kernels/linear/tile_pair.hpp"

namespace wide::kernels {

namespace {

using Tiles = TilePair<LinearMmaTile::m16n64, LinearMmaTile::m64n64>;
static_assert(Tiles::are_of(kRaggedShortTile, kRaggedTallTile, kRaggedTileN));

template <class Math>
__global__ void __launch_bounds__(Tiles::kThreads,
                                  policy_of(Tiles::kTall).blocks_per_multiprocessor)
    ragged_linear_tensor_core(const __grid_constant__ RaggedLinearParams params) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_ragged_tile<typename Math::Element>(
      params,
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_mma_tile<Math, Tiles::kShort>(member, 0, first_m, first_n, shared);
      },
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_mma_tile<Math, Tiles::kTall>(member, 0, first_m, first_n, shared);
      });
}

}  // namespace

cudaError_t launch_ragged_linear_tensor_core(const RaggedLinearParams& params, LinearMath math,
                                             cudaStream_t stream) {
  return with_plain_math(math, [&]<class Math>() {
    return launch_ragged(ragged_linear_tensor_core<Math>, params, sizeof(typename Math::Element),
                         Tiles::kThreads, Tiles::kSharedBytes, stream);
  });
}

}  // namespace wide::kernels
