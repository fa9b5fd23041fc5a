// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sums over the threads that work on one slice.
#pragma once

#include "kernels/common/numeric.cuh"

namespace wide::kernels {

constexpr uint32_t kWarp = 32;

/// Sums that a kernel takes over one set of values; each has its own place in shared memory, so
/// that no barrier is needed between them.
constexpr int kSums = 3;
using SumPlaces = float[kSums][kWarp];

/// The sum over a team of `threads` neighbours of the block, whole warps: in every thread, in a
/// fixed order. `place` is used by no other sum of the same round. With teams of several warps the
/// whole block takes part at once.
__device__ inline float sum_over_team(float value, float* place, uint32_t threads) {
  value = warp_sum(value);
  if (threads > kWarp) {
    const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const uint32_t num_warps = threads / kWarp, first_warp = warp / num_warps * num_warps;
    if (lane == 0) place[warp] = value;
    __syncthreads();
    value = warp_sum(lane < num_warps ? place[first_warp + lane] : 0.0f);
  }
  return value;
}

}  // namespace wide::kernels
