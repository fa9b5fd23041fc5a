// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions of the driver, looked up through the runtime: nothing links libcuda. For *_cuda.cpp
// files.
#pragma once

#include <cuda_runtime_api.h>

#include "host/core/cuda_check.hpp"

namespace wide {

/// `Function` is the PFN_name_vVERSION of <cudaTypedefs.h> of the last version up to CUDA 12.0.
/// Null where this driver has none, or where there is no driver.
template <class Function>
Function driver_function(const char* name) {
  constexpr unsigned kVersion = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found);
  if (error == cudaErrorInsufficientDriver) {
    forget_error(error);
    return nullptr;
  }
  if (error != cudaSuccess)
    throw_cuda(error, "cudaGetDriverEntryPointByVersion", __FILE_NAME__, __LINE__);
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

}  // namespace wide
