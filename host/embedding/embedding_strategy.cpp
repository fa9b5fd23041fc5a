// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/embedding/embedding_strategy.hpp"

#include <array>

namespace wide {

std::string_view strategy_name(EmbeddingStrategy strategy) {
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "indexed", "gather", "bag",
                                                          "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

EmbeddingStrategy one_launch_strategy(const EmbeddingProblem& problem) {
  return problem.bag == Bag::none ? EmbeddingStrategy::indexed : EmbeddingStrategy::bag;
}

namespace {

std::string unsupported_reason(EmbeddingStrategy strategy, const EmbeddingProblem& problem,
                               const DeviceInfo& device) {
  using enum EmbeddingStrategy;
  const std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty() || strategy == sequential || strategy == wide) return reason;
  const bool has_bags = problem.bag != Bag::none;
  if (strategy == bag) return has_bags ? "" : "it adds bags up, the problem has none";
  if (has_bags) return "it copies rows, the problem has bags to be added up";
  if (strategy == gather && !problem.shared_ids) {
    return "it looks at one id for all members, they have ids of their own";
  }
  return "";
}

}  // namespace

EmbeddingChoice choose_embedding_strategy(const EmbeddingProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning) {
  using enum EmbeddingStrategy;
  using enum DeviceType;
  static constexpr std::string_view kOneLaunch = "one launch for all members";
  // Names of the other device are known, and unsupported.
  static constexpr StrategyRow<EmbeddingStrategy, EmbeddingProblem> kTable[] = {
      {indexed, cuda, false, kOneLaunch},
      {bag, cuda, false, kOneLaunch},
      {sequential, cuda, false, "member after member"},
      {gather, cuda},
      {wide, cuda},
      {wide, cpu, false, "one pass over all members keeps every thread busy"},
      {sequential, cpu, false, "member after member"},
      {indexed, cpu},
      {gather, cpu},
      {bag, cpu},
  };
  return choose_strategy<EmbeddingStrategy, EmbeddingProblem>(
      {"embedding", device, name, verified_by(verified, "embedding", device),
       strategy_name(one_launch_strategy(problem)), tuning},
      kTable, problem, unsupported_reason);
}

}  // namespace wide
