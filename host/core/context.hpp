// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a Context shares with its copies, its tensors and its plans.
#pragma once

#include <memory>

#include "host/core/thread_pool.hpp"
#include "wide/context.hpp"

namespace wide {

struct Context::State {
  DeviceInfo info;
  std::shared_ptr<Allocator> allocator;
  std::unique_ptr<ThreadPool> threads;  ///< null on CUDA
};

}  // namespace wide
