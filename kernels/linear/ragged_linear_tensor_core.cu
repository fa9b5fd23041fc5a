// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members of different shapes on warp-level matrix instructions: linear_mma.cuh's tiles of 16 rows,
// the weight on the instruction's 16-row side, and of 64, x on it, in one kernel. All of a block
// takes the same one; both are of 128 threads and of nearly as much shared memory, so that neither
// keeps a multiprocessor emptier than the other would.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/linear/linear_mma.cuh"
#include "kernels/linear/ragged_linear_launch.cuh"

namespace wide::kernels {

namespace {

constexpr LinearMmaTile kShort = LinearMmaTile::m16n64, kTall = LinearMmaTile::m64n64;
constexpr int kThreads = policy_of(kTall).threads();
constexpr int kSharedBytes =
    std::max(policy_of(kShort).shared_bytes(), policy_of(kTall).shared_bytes());
static_assert(policy_of(kShort).threads() == kThreads && tile_m(kShort) == kRaggedShortTile &&
              tile_m(kTall) == kRaggedTallTile && tile_n(kShort) == kRaggedTileN &&
              tile_n(kTall) == kRaggedTileN);

template <class Math>
__global__ void __launch_bounds__(kThreads, policy_of(kTall).blocks_per_multiprocessor)
    ragged_linear_tensor_core(const __grid_constant__ RaggedLinearParams params) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_ragged_tile<typename Math::Element>(
      params,
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_mma_tile<Math, kShort>(member, 0, first_m, first_n, shared);
      },
      [&](const LinearParams& member, int64_t first_m, int64_t first_n) {
        compute_mma_tile<Math, kTall>(member, 0, first_m, first_n, shared);
      });
}

template <class Math>
cudaError_t launch_math(const RaggedLinearParams& params, cudaStream_t stream) {
  return launch_ragged(ragged_linear_tensor_core<Math>, params, sizeof(typename Math::Element),
                       kThreads, kSharedBytes, stream);
}

}  // namespace

cudaError_t launch_ragged_linear_tensor_core(const RaggedLinearParams& params, LinearMath math,
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
