// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs an attention, and which strategies run its parts: pure functions of
// problem, device and what was verified.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "host/attention/attention_problem.hpp"
#include "host/core/strategy_choice.hpp"
#include "wide/device.hpp"

namespace wide {

enum class AttentionStrategy : uint8_t {
  sequential,      ///< member by member, each part by its own `sequential`
  cublas_batched,  ///< CUDA: cuBLAS's batched GEMMs around flash_attention's own choice
  fused,           ///< CUDA: our kernels on the packed operands
  wide,            ///< CPU
};

std::string_view strategy_name(AttentionStrategy strategy);

/// The strategies of the parts.
struct AttentionPartStrategies {
  std::vector<std::string> projections;
  std::string core, output;
};
AttentionPartStrategies attention_part_strategies(AttentionStrategy strategy,
                                                  const AttentionParts& parts,
                                                  const DeviceInfo& device);

/// Why the strategy cannot run the problem on the device; empty where it can.
std::string attention_unsupported_reason(AttentionStrategy strategy,
                                         const AttentionProblem& problem, const DeviceInfo& device);

using AttentionChoice = StrategyChoice<AttentionStrategy>;

/// Throws invalid_argument for an unknown name, unsupported with the reason for one that cannot
/// run.
AttentionChoice choose_attention_strategy(const AttentionProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning = {});

}  // namespace wide
