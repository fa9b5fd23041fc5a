// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's current device, changed for a scope. For *_cuda.cpp files.
//
// A thread that has called nothing yet has no context. Most of the runtime's functions give it one,
// but neither those that only ask nor the driver's: cuTensorMapEncodeTiled() and those by which
// cuDNN starts kernels fail there with CUDA_ERROR_INVALID_CONTEXT
// (https://github.com/NVIDIA/cudnn-frontend/pull/626).
#pragma once

#include <cuda_runtime_api.h>

#include "host/core/cuda_check.hpp"

namespace wide {

/// Whether the calling thread has a context: a device's primary one, or the engine's own.
bool has_cuda_context();

class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    WIDE_CHECK_CUDA(cudaGetDevice(&previous_));
    changed_ = previous_ != ordinal;
    // Not where there is one: it need not be the primary context, which this makes current.
    if (changed_ || !has_cuda_context()) WIDE_CHECK_CUDA(cudaSetDevice(ordinal));
  }
  ~CurrentDevice() {
    if (changed_) (void)cudaSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

}  // namespace wide
