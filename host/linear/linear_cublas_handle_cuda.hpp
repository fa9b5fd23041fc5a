// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuBLAS's handle for the duration of a call.
#pragma once

#include <cublas_v2.h>

#include "host/core/beside_captures.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/native_stream.hpp"
#include "wide/context.hpp"

namespace wide {

/// The execution's handle, configured for a call and restored after it: it may be the engine's.
class ConfiguredHandle {
 public:
  ConfiguredHandle(cublasHandle_t handle, bool allow_tf32, const Execution& execution,
                   int64_t cublas_bytes)
      : handle_(handle) {
    WIDE_CHECK_CUBLAS(cublasGetStream(handle, &stream_));
    WIDE_CHECK_CUBLAS(cublasGetPointerMode(handle, &pointer_mode_));
    WIDE_CHECK_CUBLAS(cublasGetMathMode(handle, &math_mode_));
    try {
      configure(allow_tf32, execution, cublas_bytes);
    } catch (...) {
      restore();
      throw;
    }
  }
  ~ConfiguredHandle() { restore(); }
  ConfiguredHandle(const ConfiguredHandle&) = delete;

 private:
  /// The order matters: cublasSetStream resets the workspace.
  void configure(bool allow_tf32, const Execution& execution, int64_t cublas_bytes) {
    WIDE_CHECK_CUBLAS(cublasSetStream(handle_, native_stream(execution.stream)));
    WIDE_CHECK_CUBLAS(
        cublasSetWorkspace(handle_, execution.workspace.data, static_cast<size_t>(cublas_bytes)));
    WIDE_CHECK_CUBLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST));
    // An engine's handle may allow tf32 for everything; 16-bit partial sums are never wanted.
    const int mode = (allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH) |
                     CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    WIDE_CHECK_CUBLAS(cublasSetMathMode(handle_, static_cast<cublasMath_t>(mode)));
  }
  /// Setting the stream resets the execution's workspace, which the handle must not keep.
  void restore() const {
    (void)cublasSetPointerMode(handle_, pointer_mode_);
    (void)cublasSetMathMode(handle_, math_mode_);
    (void)cublasSetStream(handle_, stream_);
  }

  const BesideCaptures beside_;
  cublasHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  cublasPointerMode_t pointer_mode_ = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode_ = CUBLAS_DEFAULT_MATH;
};

}  // namespace wide
