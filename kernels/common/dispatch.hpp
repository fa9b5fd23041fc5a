// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Maps a runtime dtype to a kernel's element type, for launchers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <type_traits>

#include "wide/dtype.hpp"

namespace wide::kernels {

/// Calls f(std::type_identity<T>{}) for T = float, __half or __nv_bfloat16, and returns the
/// cudaError_t that it returns; cudaErrorInvalidValue for another dtype.
template <class F>
cudaError_t dispatch_float(Dtype dtype, F f) {
  switch (dtype) {
    case Dtype::fp32:
      return f(std::type_identity<float>{});
    case Dtype::fp16:
      return f(std::type_identity<__half>{});
    case Dtype::bf16:
      return f(std::type_identity<__nv_bfloat16>{});
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace wide::kernels
