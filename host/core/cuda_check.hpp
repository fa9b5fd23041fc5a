// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks of CUDA runtime and cuBLAS calls, for *_cuda.cpp files. The runtime's last error is
// cleared before throwing: otherwise the next, innocent call would report it again.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace wide {

[[noreturn]] void throw_cuda(cudaError_t status, const char* expression, const char* file,
                             int line);
[[noreturn]] void throw_cublas(cublasStatus_t status, const char* expression, const char* file,
                               int line);

/// For releasing calls that cannot throw: a later call does not report their failure.
inline void forget_error(cudaError_t status) {
  if (status != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace wide

#define WIDE_CHECK_CUDA(call)                                          \
  do {                                                                 \
    const cudaError_t wide_status = (call);                            \
    if (wide_status != cudaSuccess) {                                  \
      ::wide::throw_cuda(wide_status, #call, __FILE_NAME__, __LINE__); \
    }                                                                  \
  } while (false)

#define WIDE_CHECK_CUBLAS(call)                                          \
  do {                                                                   \
    const cublasStatus_t wide_status = (call);                           \
    if (wide_status != CUBLAS_STATUS_SUCCESS) {                          \
      ::wide::throw_cublas(wide_status, #call, __FILE_NAME__, __LINE__); \
    }                                                                    \
  } while (false)
