// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime that no stream orders (allocating, freeing, waiting) are refused while
// any stream is captured in mode global, and invalidate that capture. For *_cuda.cpp files.
#pragma once

#include <cuda_runtime_api.h>

namespace wide {

/// For a scope, this thread's calls ignore captures: for calls on memory, graphs and streams that
/// the library owns, for a wait that the caller asked for, or for a vendor's call, whose first one
/// may load its kernels. What is put on a captured stream is captured all the same.
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
