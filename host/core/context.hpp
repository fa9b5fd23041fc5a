// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a Context shares with its copies, its tensors and its plans.
#pragma once

#include <memory>

#include "host/core/thread_pool.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"
#include "wide/context.hpp"

namespace wide {

struct Context::State {
  DeviceInfo info;
  std::shared_ptr<Allocator> allocator;
  OwnedThreadPool threads;                      ///< null on CUDA
  std::unique_ptr<CudnnPlanCache> cudnn_plans;  ///< null on the CPU
};

}  // namespace wide
