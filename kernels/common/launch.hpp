// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How launchers of all families start a kernel, and what they check and ask before.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace wide::kernels {

/// Whether the address and both strides are multiples of `elements` elements of `bytes` bytes.
inline bool is_aligned(const void* pointer, int64_t row, int64_t member, int64_t elements,
                       int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(elements * bytes) == 0 &&
         row % elements == 0 && member % elements == 0;
}

/// Raises a kernel's limit of dynamic shared memory where the default is too small; `static_bytes`
/// is an upper bound of its static part. Always to the device's maximum: the limit belongs to the
/// kernel, not to a launch, and a lower one could break another thread's launch.
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

/// Whether this build has code for exactly this compute capability. Other devices run code for an
/// earlier one, possibly as PTX; sm_90a code runs on 9.0 only.
constexpr bool has_code_of(int major, int minor) {
#if defined(__CUDA_ARCH_LIST__)
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    if (architecture == 100 * major + 10 * minor) return true;
  }
#endif
  return false;
}

/// Whether the environment lets launches overlap: WIDE_PROGRAMMATIC_LAUNCH=0 there is for programs
/// that nobody can build again where a driver has trouble with them. Read once.
inline bool is_overlap_wanted() {
  static const bool is_wanted = [] {
    const char* value = std::getenv("WIDE_PROGRAMMATIC_LAUNCH");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return is_wanted;
}

/// Whether launches on the current device may overlap: its code waits for the preceding kernel
/// (kernels/arch/grid.cuh), as code for 9.0 and later does. Never where the build option
/// WIDE_PROGRAMMATIC_LAUNCH is off, or the environment has 0 for it.
inline cudaError_t may_overlap(int& may) {
  may = 0;
#if WIDE_PROGRAMMATIC_LAUNCH
  if (!is_overlap_wanted()) return cudaSuccess;
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

/// launch_kernel() where `cluster` neighbouring blocks run at the same time and reach one another's
/// shared memory (kernels/arch/cluster.cuh). They divide grid.x. 1: no clusters; up to 8 are
/// possible on any device of compute capability 9.0.
template <class... Args>
cudaError_t launch_clusters(void (*kernel)(Args...), unsigned cluster, dim3 grid, dim3 threads,
                            size_t shared_bytes, cudaStream_t stream,
                            const std::type_identity_t<Args>&... args) {
  int overlaps = 0;
  const cudaError_t status = may_overlap(overlaps);
  if (status != cudaSuccess) return status;
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (overlaps != 0) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& blocks = attributes[config.numAttrs++];
    blocks.id = cudaLaunchAttributeClusterDimension;
    blocks.val.clusterDim = {cluster, 1, 1};
  }
  return cudaLaunchKernelEx(&config, kernel, args...);
}

/// kernel<<<grid, threads, shared_bytes, stream>>>(args...), and the status of that alone:
/// cudaGetLastError() afterwards could return the error of an earlier call.
///
/// On compute capability 9.0 and later its blocks may start before the preceding kernel in the
/// stream, ours or not, has ended; its threads wait for that before they access memory, as every
/// kernel does (kernels/arch/grid.cuh; checked by scripts/check_kernels and the simulated GPU).
/// When captured, this is a programmatic edge of the graph. After anything but a kernel (copies,
/// fills, awaited events) it starts when that has ended, by a full edge, like any other launch; and
/// later work that does not request overlap (copies, fills, recorded events, kernels launched
/// otherwise) waits for its end and so for everything before it.
template <class... Args>
cudaError_t launch_kernel(void (*kernel)(Args...), dim3 grid, dim3 threads, size_t shared_bytes,
                          cudaStream_t stream, const std::type_identity_t<Args>&... args) {
  return launch_clusters(kernel, 1, grid, threads, shared_bytes, stream, args...);
}

}  // namespace wide::kernels
