// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What launchers of all families ask of addresses and of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

namespace wide::kernels {

/// Whether the address and both strides are multiples of `elements` elements of `bytes` bytes.
inline bool is_aligned(const void* pointer, int64_t row, int64_t member, int64_t elements,
                       int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(elements * bytes) == 0 &&
         row % elements == 0 && member % elements == 0;
}

/// Asks for dynamic shared memory where a kernel, which has `static_bytes` of its own or fewer,
/// does not get as much unasked. Always for all that there is: what a kernel may have is no
/// property of a launch, and one that asked for less would take it from another thread's.
template <class Kernel>
cudaError_t allow_shared_bytes(Kernel* kernel, int64_t bytes, int static_bytes = 0) {
  constexpr int kUnasked = 48 * 1024;
  if (bytes + static_bytes <= kUnasked) return cudaSuccess;
  int device = 0, most = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (status != cudaSuccess) return status;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              most - static_bytes);
}

/// kernel<<<grid, threads, shared_bytes, stream>>>(args...), and its own status: cudaGetLastError()
/// behind it would take an error of whoever called before for the launch's.
template <class... Args>
cudaError_t launch_kernel(void (*kernel)(Args...), dim3 grid, dim3 threads, size_t shared_bytes,
                          cudaStream_t stream, const std::type_identity_t<Args>&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

/// Starts a kernel whose threads wait_for_grid() (kernels/arch/grid.cuh): its blocks may start
/// before the kernel before in the stream has ended. Also in a graph, as a programmatic edge.
template <class... Args>
cudaError_t launch_overlapping(void (*kernel)(Args...), unsigned blocks, unsigned threads,
                               size_t shared_bytes, cudaStream_t stream,
                               const std::type_identity_t<Args>&... args) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace wide::kernels
