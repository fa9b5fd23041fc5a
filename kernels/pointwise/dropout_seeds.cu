// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sets and advances dropout's seeds within the stream, between two passes: the host waits for
// neither, and a graph that captured an advance draws other numbers each time it is replayed.
// Plan: a block per dropout, its threads take members.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/pointwise/dropout_seeds.hpp"

namespace wide::kernels {

namespace {

struct SeedsOfLaunch {
  uint64_t of[kMaxSeedsOfLaunch];
  int64_t first;
  int count;
};

/// Of one member in this block's dropout: [2].
__device__ uint64_t* seed_at(const DropoutSeeds& p, int64_t member) {
  auto* values = reinterpret_cast<uint64_t*>(p.values);
  return values + 2 * (blockIdx.x * p.stored_members + member);
}

__global__ void __launch_bounds__(kMaxSeedsOfLaunch)
    set_dropout_seeds_kernel(const __grid_constant__ DropoutSeeds p,
                             const __grid_constant__ SeedsOfLaunch seeds, uint64_t sequence) {
  arch::follow_grid();
  const auto number = static_cast<int>(threadIdx.x);
  if (number >= seeds.count) return;
  uint64_t* seed = seed_at(p, seeds.first + number);
  seed[0] = seeds.of[number];
  seed[1] = sequence * static_cast<uint64_t>(p.num_dropouts) + blockIdx.x;
}

constexpr int kAdvanceThreads = 128;

__global__ void __launch_bounds__(kAdvanceThreads)
    advance_dropout_seeds_kernel(const __grid_constant__ DropoutSeeds p, uint64_t last) {
  arch::follow_grid();
  for (int64_t member = threadIdx.x; member < p.num_members; member += kAdvanceThreads) {
    uint64_t& sequence = seed_at(p, member)[1];
    sequence = sequence < last ? sequence + static_cast<uint64_t>(p.num_dropouts) : blockIdx.x;
  }
}

}  // namespace

cudaError_t launch_set_dropout_seeds(const DropoutSeeds& of, int64_t first, const uint64_t* seeds,
                                     int count, uint64_t sequence, cudaStream_t stream) {
  if (count < 0 || count > kMaxSeedsOfLaunch) return cudaErrorInvalidValue;
  if (count == 0 || of.num_dropouts == 0) return cudaSuccess;
  SeedsOfLaunch own{{}, first, count};
  std::copy_n(seeds, count, own.of);
  return launch_kernel(set_dropout_seeds_kernel, static_cast<unsigned>(of.num_dropouts),
                       kMaxSeedsOfLaunch, 0, stream, of, own, sequence);
}

cudaError_t launch_advance_dropout_seeds(const DropoutSeeds& of, uint64_t last,
                                         cudaStream_t stream) {
  if (of.num_members == 0 || of.num_dropouts == 0) return cudaSuccess;
  return launch_kernel(advance_dropout_seeds_kernel, static_cast<unsigned>(of.num_dropouts),
                       kAdvanceThreads, 0, stream, of,
                       last * static_cast<uint64_t>(of.num_dropouts));
}

}  // namespace wide::kernels
