// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The last plans that a context was asked for, and the last refusals: to find out either takes
// seconds where cuDNN compiles an engine for the problem.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

/// May be used by several threads; one makes a plan at a time.
class CudnnPlanCache {
 public:
  using Make = std::function<std::shared_ptr<const CudnnPlan>()>;
  /// The plan of an equal graph, or what `make` returns. An Error{unsupported} that it throws is
  /// kept likewise.
  std::shared_ptr<const CudnnPlan> find_or_make(const CudnnGraph& graph,
                                                const CudnnNumerics& numerics, const Make& make);

 private:
  struct Entry {
    CudnnGraph graph;
    CudnnNumerics numerics;
    std::shared_ptr<const CudnnPlan> plan;  ///< or null and the refusal
    std::string refusal;
  };
  std::mutex mutex_;
  std::deque<Entry> entries_;  ///< the oldest first
};

}  // namespace wide
