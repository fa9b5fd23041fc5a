// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/stream_blocker.hpp"

namespace wide::bench {

namespace {

__global__ void block_stream_kernel(const volatile int* released, volatile int* timed_out,
                                    long long timeout_cycles) {
  const long long start = clock64();
  while (*released == 0) {
    if (clock64() - start > timeout_cycles) {
      *timed_out = 1;
      return;
    }
  }
}

}  // namespace

cudaError_t launch_block_stream(const int* released, int* timed_out, int64_t timeout_cycles,
                                cudaStream_t stream) {
  block_stream_kernel<<<1, 1, 0, stream>>>(released, timed_out, timeout_cycles);
  return cudaGetLastError();
}

}  // namespace wide::bench
