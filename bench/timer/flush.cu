// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/timer/flush.hpp"

namespace wide::bench {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1024;  // fill the largest device

/// The words that are found are what keeps the loads: one without a use is removed.
__global__ void read_kernel(const uint4* data, int64_t count, uint32_t* found) {
  uint32_t any = 0;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const uint4 words = __ldcg(data + i);
    any |= words.x | words.y | words.z | words.w;
  }
  if (any != 0) *found = any;
}

}  // namespace

cudaError_t launch_read(const void* data, int64_t bytes, uint32_t* found, cudaStream_t stream) {
  const int64_t count = bytes / static_cast<int64_t>(sizeof(uint4));
  const int64_t blocks = std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, kMaxBlocks);
  read_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      static_cast<const uint4*>(data), count, found);
  return cudaGetLastError();
}

}  // namespace wide::bench
