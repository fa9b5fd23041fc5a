// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/self_check/chase.hpp"

namespace wide::bench {

namespace {

/// Bypasses the L1, which is not what is measured.
__global__ void chase_kernel(const uint32_t* links, int64_t steps, uint32_t* ends) {
  constexpr int64_t kWords = kChaseStep / static_cast<int64_t>(sizeof(uint32_t));
  uint32_t place = blockIdx.x;
  for (int64_t i = 0; i < steps; ++i) place = __ldcg(links + place * kWords);
  ends[blockIdx.x] = place;
}

}  // namespace

cudaError_t launch_chase(const void* links, int64_t steps, int chasers, uint32_t* ends,
                         cudaStream_t stream) {
  chase_kernel<<<static_cast<unsigned>(chasers), 1, 0, stream>>>(
      static_cast<const uint32_t*>(links), steps, ends);
  return cudaGetLastError();
}

}  // namespace wide::bench
