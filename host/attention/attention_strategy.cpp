// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/attention/attention_strategy.hpp"

#include <array>

#include "host/attention/flash_attention_strategy.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

std::string linear_part(AttentionStrategy strategy, const LinearProblem& problem,
                        const DeviceInfo& device) {
  if (strategy != AttentionStrategy::fused) return std::string(strategy_name(strategy));
  return std::string(strategy_name(own_linear_kernel(problem, device)));
}

}  // namespace

std::string_view strategy_name(AttentionStrategy strategy) {
  static constexpr std::array<std::string_view, 4> kNames{"sequential", "cublas_batched", "fused",
                                                          "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

AttentionPartStrategies attention_part_strategies(AttentionStrategy strategy,
                                                  const AttentionParts& parts,
                                                  const DeviceInfo& device) {
  AttentionPartStrategies names;
  for (const LinearProblem& projection : parts.projections) {
    names.projections.push_back(linear_part(strategy, projection, device));
  }
  names.output = linear_part(strategy, parts.output, device);
  names.core = strategy == AttentionStrategy::fused
                   ? strategy_name(flash_attention_kernels(parts.core, device).front())
               : strategy == AttentionStrategy::cublas_batched ? "auto"
                                                               : strategy_name(strategy);
  return names;
}

std::string attention_unsupported_reason(AttentionStrategy strategy,
                                         const AttentionProblem& problem,
                                         const DeviceInfo& device) {
  using enum AttentionStrategy;
  if (problem.needs_weights) {
    return "needs_weights is true: the weights of attention are never in memory, and writing Tq Tk "
           "of them per head is what flash_attention avoids";
  }
  std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  const AttentionParts parts =
      attention_parts(problem, strategy == sequential ? 1 : problem.num_members);
  const AttentionPartStrategies names = attention_part_strategies(strategy, parts, device);
  const auto linear_reason = [&](const LinearProblem& linear, const std::string& by) {
    const std::string against =
        linear_unsupported_reason(*parse_linear_strategy(by, device.device.type), linear, device);
    return against.empty() ? "" : "linear by " + by + ": " + against;
  };
  for (size_t i = 0; i < parts.projections.size() && reason.empty(); ++i) {
    reason = linear_reason(parts.projections[i], names.projections[i]);
  }
  if (reason.empty()) reason = linear_reason(parts.output, names.output);
  if (!reason.empty()) return reason;
  const auto core = device.device.type == DeviceType::cpu ? FlashAttentionStrategy::wide
                    : strategy == fused ? flash_attention_kernels(parts.core, device).front()
                                        : FlashAttentionStrategy::sequential;
  reason = flash_attention_unsupported_reason(core, parts.core, device);
  if (reason.empty()) return "";
  return "flash_attention by " + std::string(strategy_name(core)) + ": " + reason;
}

AttentionChoice choose_attention_strategy(const AttentionProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning) {
  using enum AttentionStrategy;
  using enum DeviceType;
  static constexpr StrategyRow<AttentionStrategy, AttentionProblem> kTable[] = {
      {fused, cuda, false, "one launch a part for all members"},
      {cublas_batched, cuda, true, "one vendor call a product"},
      {sequential, cuda, false, "member after member"},
      {wide, cpu, false, "the parts of all members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<AttentionStrategy, AttentionProblem>(
      {"attention", device, name, verified_by(verified, "attention", device), "", tuning}, kTable,
      problem, attention_unsupported_reason);
}

}  // namespace wide
