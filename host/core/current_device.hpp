// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's current device, changed for a scope. For *_cuda.cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include "host/core/cuda_check.hpp"

namespace wide {

class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) {
    WIDE_CHECK_CUDA(cudaGetDevice(&previous_));
    if (previous_ != ordinal) WIDE_CHECK_CUDA(cudaSetDevice(ordinal));
    changed_ = previous_ != ordinal;
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
