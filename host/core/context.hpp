// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a Context shares with its copies, its tensors and its plans.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "host/core/cudnn_handle.hpp"
#include "host/core/thread_pool.hpp"
#include "wide/context.hpp"

namespace wide {

/// cuBLASLt's handle, which plans are made with. Kept from the first of them on, as giving one back
/// waits for the device: any stream's capture would end, and every plan would wait.
class CublasLtHandle {
 public:
  explicit CublasLtHandle(int ordinal) : ordinal_(ordinal) {}
  ~CublasLtHandle();
  CublasLtHandle(const CublasLtHandle&) = delete;
  CublasLtHandle& operator=(const CublasLtHandle&) = delete;
  /// The cublasLtHandle_t, or null and the reason. May be used by several threads.
  void* get(std::string& reason);

 private:
  int ordinal_;
  std::mutex mutex_;
  void* handle_ = nullptr;
};

struct Context::State {
  DeviceInfo info;
  std::shared_ptr<Allocator> allocator;
  OwnedThreadPool threads;                      ///< null on CUDA
  std::shared_ptr<CudnnPlanCache> cudnn_plans;  ///< null on the CPU
  std::unique_ptr<CublasLtHandle> cublaslt;     ///< null on the CPU
};

}  // namespace wide
