// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime that no stream orders (allocating, freeing, waiting) are refused while
// any stream is captured in mode global, and invalidate that capture. For *_cuda.cpp files.
#pragma once

#include <cuda_runtime_api.h>

namespace wide {

/// For a scope, this thread's calls ignore captures: for calls on memory, graphs and streams that
/// the library owns, or a wait that the caller asked for.
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
