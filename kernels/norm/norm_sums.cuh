// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the norms' kernels have in common: sums over the threads that work on one set of values.
#pragma once

#include "kernels/common/numeric.cuh"

namespace wide::kernels {

constexpr int kWarp = 32;

/// Sums that a kernel takes over one set of values; each has its own place in shared memory, so
/// that no barrier is needed between them.
constexpr int kSums = 3;
using SumPlaces = float[kSums][kWarp];

/// The sum over the first `num_warps` warps of the block, which is all of them or one: in every
/// thread, always added in the same order. `place` is used by no other sum.
__device__ inline float sum_over_warps(float value, float* place, int num_warps) {
  value = warp_sum(value);
  if (num_warps > 1) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp,
              lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane == 0) place[warp] = value;
    __syncthreads();
    value = warp_sum(lane < num_warps ? place[lane] : 0.0f);
  }
  return value;
}

}  // namespace wide::kernels
