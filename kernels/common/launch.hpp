// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What launchers of all families ask of addresses and of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

/// Whether the address and both strides are multiples of `elements` elements of `bytes` bytes.
inline bool is_aligned(const void* pointer, int64_t row, int64_t member, int64_t elements,
                       int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(elements * bytes) == 0 &&
         row % elements == 0 && member % elements == 0;
}

/// Asks for dynamic shared memory, where a kernel does not get as much without asking.
template <class Kernel>
cudaError_t allow_shared_bytes(Kernel* kernel, int bytes) {
  constexpr int kUnasked = 48 * 1024;
  if (bytes <= kUnasked) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

}  // namespace wide::kernels
