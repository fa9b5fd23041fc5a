// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a runtime mode and dtype to a kernel's, for launchers.
#pragma once

#include "kernels/common/dispatch.hpp"
#include "wide/pooling_mode.hpp"

namespace wide::kernels {

/// Calls f.template operator()<kMode, T>() and returns what it returns; cudaErrorInvalidValue for
/// another dtype than dispatch_float() has.
template <class F>
cudaError_t dispatch_pooling(PoolingMode mode, Dtype dtype, const F& f) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    switch (mode) {
      case PoolingMode::max:
        return f.template operator()<PoolingMode::max, T>();
      case PoolingMode::average:
        return f.template operator()<PoolingMode::average, T>();
      case PoolingMode::adaptive_average:
        return f.template operator()<PoolingMode::adaptive_average, T>();
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace wide::kernels
