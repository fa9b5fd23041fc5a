// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime that no stream orders (allocating, freeing, waiting) are refused while
// somebody captures a stream in mode global, and make that capture worthless. For *_cuda.cpp files.
#pragma once

#include <cuda_runtime_api.h>

namespace wide {

/// For a scope, this thread's calls do not mind what is captured: where they are about memory,
/// graphs and streams that are the library's own, or somebody asked for the wait.
class BesideCaptures {
 public:
  BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  ///< then the thread's own
};

}  // namespace wide
