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

/// Whether this build has code of a device's own compute capability. Other devices run code of an
/// earlier one, be it as PTX: those of sm_90a's code run on 9.0 alone.
constexpr bool has_code_of(int major, int minor) {
#if defined(__CUDA_ARCH_LIST__)
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    if (architecture == 100 * major + 10 * minor) return true;
  }
#endif
  return false;
}

/// Whether launches on the current device may overlap: its code waits for the kernel before
/// (kernels/arch/grid.cuh), which code for 9.0 and later does. The option WIDE_PROGRAMMATIC_LAUNCH
/// of the build says no.
inline cudaError_t may_overlap(int& may) {
  may = 0;
#if WIDE_PROGRAMMATIC_LAUNCH
  int device = 0, major = 0, minor = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (status != cudaSuccess) return status;
  may = major >= 9 && has_code_of(major, minor) ? 1 : 0;
#endif
  return cudaSuccess;
}

/// kernel<<<grid, threads, shared_bytes, stream>>>(args...), and its own status: cudaGetLastError()
/// behind it would take an error of whoever called before for the launch's.
///
/// On compute capability 9.0 and later its blocks may start before the kernel before in the stream
/// has ended, be that one of ours or not; its threads wait for that before they touch memory, which
/// every kernel does (kernels/arch/grid.cuh; scripts/check_kernels and the simulated GPU hold
/// them to it). Captured, that is a programmatic edge of the graph. Behind anything but a kernel
/// (copies, fills, events that are waited for) it starts when that is over, by a full edge, like
/// any other; and what comes behind it without asking for the same (copies, fills, recorded events,
/// kernels launched otherwise) waits for its end and so for all that was before.
template <class... Args>
cudaError_t launch_kernel(void (*kernel)(Args...), dim3 grid, dim3 threads, size_t shared_bytes,
                          cudaStream_t stream, const std::type_identity_t<Args>&... args) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  const cudaError_t status = may_overlap(overlap.val.programmaticStreamSerializationAllowed);
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = overlap.val.programmaticStreamSerializationAllowed != 0 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace wide::kernels
