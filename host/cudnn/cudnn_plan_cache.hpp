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
#include <vector>

#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

/// May be used by several threads; one makes a plan at a time.
class CudnnPlanCache {
 public:
  using Plans = std::vector<std::shared_ptr<const CudnnPlan>>;
  /// What follows the plan, or comes first where that is null.
  using MakeNext = std::function<std::shared_ptr<const CudnnPlan>(const CudnnPlan* previous)>;
  /// The first `count` plans of an equal graph, which `make` makes where they are not kept, or all
  /// of them where it throws unsupported, which is kept likewise. Throws that where there is none.
  Plans find_or_make(const CudnnGraph& graph, const CudnnNumerics& numerics, size_t count,
                     const MakeNext& make);

 private:
  struct Entry {
    CudnnGraph graph;
    CudnnNumerics numerics;
    Plans plans;
    std::string refusal;  ///< of another one; empty: `make` has not been asked
  };
  Entry& entry_of(const CudnnGraph& graph, const CudnnNumerics& numerics);
  std::mutex mutex_;
  std::deque<Entry> entries_;  ///< the oldest first
};

}  // namespace wide
