// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a launch gets of shared memory: a kernel with some of its own.
#include "verify/golden/golden.hpp"

namespace wide::golden {

namespace {

__global__ void touch(int* out) {
  __shared__ int own[kOwnSharedBytes / sizeof(int)];
  extern __shared__ int asked[];
  own[threadIdx.x] = 1;
  asked[threadIdx.x] = 2;
  __syncthreads();
  out[threadIdx.x] = own[31 - threadIdx.x] + asked[31 - threadIdx.x];
}

}  // namespace

cudaError_t allow_shared(int bytes) {
  return cudaFuncSetAttribute(touch, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

cudaError_t launch_with_shared(int bytes) {
  const DeviceBytes out(32 * sizeof(int));
  touch<<<1, 32, static_cast<size_t>(bytes)>>>(out.as<int>());
  const cudaError_t status = cudaGetLastError();
  check(cudaDeviceSynchronize());
  return status;
}

}  // namespace wide::golden
