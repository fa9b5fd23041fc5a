// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/core/beside_captures.hpp"
#include "host/cudnn/cudnn_descriptor_cuda.hpp"

namespace wide::cudnn {

/// The handle on the call's stream, and after the call on its own: it may be the engine's.
class OnStream {
 public:
  OnStream(cudnnHandle_t handle, cudaStream_t stream) : handle_(handle) {
    require(cudnnGetStream(handle, &own_));
    require(cudnnSetStream(handle, stream));
  }
  ~OnStream() { (void)cudnnSetStream(handle_, own_); }
  OnStream(const OnStream&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  const BesideCaptures beside_;
  cudnnHandle_t handle_;
  cudaStream_t own_ = nullptr;
};

}  // namespace wide::cudnn
