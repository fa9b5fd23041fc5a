// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_plan.hpp"

#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/context.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/core/text.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"

namespace wide {

namespace {

constexpr size_t kMaxGraphs = 64;  // as many as the layers of a large model

}  // namespace

CudnnDevice cudnn_device(const Context& context) {
  return {context.device().ordinal, "", context.state().cudnn_plans.get()};
}

std::shared_ptr<CudnnPlanCache> make_cudnn_plan_cache() {
  return std::make_shared<CudnnPlanCache>();
}

std::string cudnn_alignment_reason(
    std::initializer_list<std::pair<const char*, ConstTensorView>> operands) {
  for (const auto& [name, view] : operands) {
    if (view.alignment() % kCudnnAlignment == 0) continue;
    return std::string(name) + " is aligned to " + std::to_string(view.alignment()) +
           " bytes, expected cuDNN's = " + std::to_string(kCudnnAlignment);
  }
  return "";
}

CudnnPlanCache::Entry& CudnnPlanCache::entry_of(const CudnnGraph& graph,
                                                const CudnnNumerics& numerics) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.numerics == numerics && entry.graph == graph;
  });
  if (found != entries_.end()) return *found;
  if (entries_.size() == kMaxGraphs) entries_.pop_front();
  return entries_.emplace_back(Entry{graph, numerics, {}, ""});
}

CudnnPlanCache::Plans CudnnPlanCache::find_or_make(const CudnnGraph& graph,
                                                   const CudnnNumerics& numerics, size_t count,
                                                   const MakeNext& make) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(graph, numerics);
  Plans& plans = entry.plans;
  while (plans.size() < count && entry.refusal.empty()) {
    try {
      plans.push_back(make(plans.empty() ? nullptr : plans.back().get()));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      entry.refusal = error.what();
    }
  }
  if (plans.empty()) throw_unsupported(entry.refusal);
  return {plans.begin(),
          plans.begin() + std::min(std::ssize(plans), static_cast<ptrdiff_t>(count))};
}

std::shared_ptr<const CudnnPlan> make_cudnn_plan(std::string_view primitive,
                                                 const CudnnDevice& device, const CudnnGraph& graph,
                                                 const CudnnNumerics& numerics, int place) {
  const auto next = [&](const CudnnPlan* previous) {
    return find_cudnn_engine(primitive, device, graph, numerics, previous);
  };
  CudnnPlanCache own;
  CudnnPlanCache& cache = device.cache == nullptr ? own : *device.cache;
  const auto plans = cache.find_or_make(graph, numerics, static_cast<size_t>(place) + 1, next);
  const int offered = static_cast<int>(plans.size());
  if (place < offered) return plans.back();
  throw_unsupported(std::string(primitive) + ": policy " + heuristic_policy(place) +
                    ": cuDNN offers " + counted(offered, "configuration") +
                    " for this problem, expected h0" +
                    (offered > 1 ? " to " + heuristic_policy(offered - 1) : ""));
}

}  // namespace wide
