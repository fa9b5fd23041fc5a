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
  return std::string(linear_strategy_name(own_linear_kernel(problem, device)));
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
  const std::string name(strategy_name(strategy));
  if (problem.needs_weights) {
    return "needs_weights is true: the weights of attention are never in memory, and writing Tq Tk "
           "of them per head is what flash_attention avoids";
  }
  const bool on_cpu = device.device.type == DeviceType::cpu;
  if (on_cpu && strategy != wide && strategy != sequential) {
    return name + " is no strategy on the CPU";
  }
  if (!on_cpu && strategy == wide) return "wide is no strategy on CUDA";
  const AttentionParts parts =
      attention_parts(problem, strategy == sequential ? 1 : problem.num_members);
  const AttentionPartStrategies names = attention_part_strategies(strategy, parts, device);
  const auto linear_reason = [&](const LinearProblem& linear, const std::string& by) {
    const std::string reason =
        linear_unsupported_reason(*parse_linear_strategy(by, device.device.type), linear, device);
    return reason.empty() ? "" : name + ": linear by " + by + ": " + reason;
  };
  for (size_t i = 0; i < parts.projections.size(); ++i) {
    const std::string reason = linear_reason(parts.projections[i], names.projections[i]);
    if (!reason.empty()) return reason;
  }
  const std::string reason = linear_reason(parts.output, names.output);
  if (!reason.empty()) return reason;
  const auto core = on_cpu              ? FlashAttentionStrategy::wide
                    : strategy == fused ? flash_attention_kernels(parts.core, device).front()
                                        : FlashAttentionStrategy::sequential;
  return flash_attention_unsupported_reason(core, parts.core, device);
}

AttentionChoice choose_attention_strategy(const AttentionProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified) {
  using enum AttentionStrategy;
  const auto reason = [&](AttentionStrategy strategy) {
    return attention_unsupported_reason(strategy, problem, device);
  };
  if (device.device.type == DeviceType::cpu) {
    return choose_in_order<AttentionStrategy>(
        "attention", device, name, verified,
        {{wide, "the parts of all members share the threads"}, {sequential}}, reason);
  }
  return choose_in_order<AttentionStrategy>(
      "attention", device, name, verified,
      {{fused, "one launch a part for all members", true}, {cublas_batched}, {sequential}}, reason);
}

}  // namespace wide
