// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/current_device.hpp"

#include <cudaTypedefs.h>

#include "host/core/driver_function.hpp"

namespace wide {

bool has_cuda_context() {
  static const auto get = driver_function<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (get == nullptr) return true;  // without a driver there is none to give either
  return get(&context) == CUDA_SUCCESS && context != nullptr;
}

}  // namespace wide
