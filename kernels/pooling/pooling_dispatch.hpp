// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Dispatches a runtime mode and dtype to a kernel's, for launchers.
#pragma once

#include "kernels/common/dispatch.hpp"
#include "wide/pooling_mode.hpp"

namespace wide::kernels {

/// Calls f.template operator()<kMode, T>() and returns its result; cudaErrorInvalidValue for a
/// dtype that dispatch_float() lacks.
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
