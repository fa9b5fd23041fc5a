// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/embedding/embedding_strategy.hpp"

#include <array>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"

namespace wide {

std::string_view strategy_name(EmbeddingStrategy strategy) {
  switch (strategy) {
    case EmbeddingStrategy::sequential:
      return "sequential";
    case EmbeddingStrategy::indexed:
      return "indexed";
    case EmbeddingStrategy::gather:
      return "gather";
    case EmbeddingStrategy::bag:
      return "bag";
    case EmbeddingStrategy::wide:
      return "wide";
  }
  return "?";
}

EmbeddingStrategy one_launch_strategy(const EmbeddingProblem& problem) {
  return problem.bag == Bag::none ? EmbeddingStrategy::indexed : EmbeddingStrategy::bag;
}

namespace {

/// Why the kernel of that name cannot run the problem; empty where it can.
std::string reason_against(std::string_view name, const EmbeddingProblem& problem) {
  const bool has_bags = problem.bag != Bag::none;
  if (name == "bag") return has_bags ? "" : "adds bags up, the problem has none";
  if (has_bags) return "copies rows, the problem has bags to be added up";
  if (name == "gather" && !problem.shared_ids) {
    return "looks at one id for all members, they have ids of their own";
  }
  return "";
}

}  // namespace

EmbeddingChoice choose_embedding_strategy(const EmbeddingProblem& problem, const DeviceInfo& device,
                                          std::string_view name, bool is_verified) {
  static constexpr std::array<std::string_view, 6> kNames{"auto",   "sequential", "indexed",
                                                          "gather", "bag",        "wide"};
  require_known_strategy("embedding", name, kNames);
  const bool on_cuda = device.device.type == DeviceType::cuda;
  using enum EmbeddingStrategy;
  if (name == "auto") {
    if (!on_cuda) return {wide, "wide: one pass over all members keeps every thread busy"};
    const EmbeddingStrategy kernel = one_launch_strategy(problem);
    const std::string kernel_name(strategy_name(kernel));
    if (is_verified) return {kernel, kernel_name + ": one launch for all members"};
    return {sequential, "sequential: " + kernel_name + " is unverified on compute capability " +
                            std::to_string(device.compute_capability)};
  }
  const std::string asked = std::string(name) + ": asked for by name";
  if (name == "sequential") return {sequential, asked};
  if (name == "wide") {
    if (!on_cuda) return {wide, asked};
    throw_unsupported("embedding: wide is the CPU device's strategy, the device is " +
                      to_string(device.device));
  }
  if (!on_cuda) {
    throw_unsupported("embedding: " + std::string(name) +
                      " is a CUDA kernel, the device is the CPU");
  }
  const std::string reason = reason_against(name, problem);
  if (!reason.empty()) throw_unsupported("embedding: " + std::string(name) + " " + reason);
  return {name == "indexed" ? indexed : name == "gather" ? gather : bag, asked};
}

}  // namespace wide
