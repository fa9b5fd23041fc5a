// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_plan.hpp"

#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/context.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"

namespace wide {

namespace {

constexpr size_t kMaxPlans = 64;  // as many as the layers of a large model

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

std::shared_ptr<const CudnnPlan> CudnnPlanCache::find_or_make(const CudnnGraph& graph,
                                                              const CudnnNumerics& numerics,
                                                              const Make& make) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.numerics == numerics && entry.graph == graph;
  });
  if (found != entries_.end()) {
    if (!found->plan) throw_unsupported(found->refusal);
    return found->plan;
  }
  Entry entry{graph, numerics, nullptr, ""};
  try {
    entry.plan = make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    entry.refusal = error.what();
  }
  if (entries_.size() == kMaxPlans) entries_.pop_front();
  const Entry& kept = entries_.emplace_back(std::move(entry));
  if (!kept.plan) throw_unsupported(kept.refusal);
  return kept.plan;
}

std::shared_ptr<const CudnnPlan> make_cudnn_plan(std::string_view primitive,
                                                 const CudnnDevice& device, const CudnnGraph& graph,
                                                 const CudnnNumerics& numerics) {
  const auto make = [&] { return find_cudnn_engine(primitive, device, graph, numerics); };
  return device.cache == nullptr ? make() : device.cache->find_or_make(graph, numerics, make);
}

}  // namespace wide
