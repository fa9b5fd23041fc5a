// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/empty_kernel.hpp"

#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"

namespace wide::bench {

namespace {
__global__ void empty_kernel() {}

__global__ void following_kernel() {
  kernels::arch::follow_grid();
}
}  // namespace

cudaError_t launch_empty_kernel(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_following_kernel(cudaStream_t stream) {
  return kernels::launch_kernel(following_kernel, 1, 1, 0, stream);
}

}  // namespace wide::bench
