// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a convolution: pure functions of problem, device, what was verified and what
// cuDNN answers.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "host/conv/conv_run.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"
#include "wide/device.hpp"

namespace wide {

struct ConvStrategy {
  std::string_view name;
  DeviceType device;
  bool is_vendors;  ///< needs no evidence of ours
  /// Why it cannot run the (completed, not empty) problem there; empty where it can.
  std::string (*unsupported_reason)(const ConvProblem& problem, const DeviceInfo& device);
  /// Whether "auto" takes it where it can run and is proved; `why` goes into the explanation.
  bool (*is_expected_to_win)(const ConvProblem& problem, const DeviceInfo& device);
  std::string_view why;
  ConvRunner (*make)(const Context& context, const ConvProblem& problem);
  /// Instead, by a policy: a place in kCudnnPolicies. Null: the strategy has none.
  ConvRunner (*make_at)(const Context& context, const ConvProblem& problem, int place) = nullptr;
};

/// All, in the order in which "auto" prefers them; `sequential` is the last of each device. A
/// strategy may appear twice, as in StrategyRow: `sequential` where it is cuDNN's.
std::span<const ConvStrategy> conv_strategies();

std::string_view strategy_name(const ConvStrategy* strategy);

/// The first of that name on such a device; null where there is none.
const ConvStrategy* find_conv_strategy(std::string_view name, DeviceType device);

/// Why the strategy has no such policy; empty where it has, or the policy is empty: its first.
std::string conv_policy_reason(const ConvStrategy& strategy, std::string_view policy);

/// By one of the strategy's policies. Throws unsupported where the vendor's library refuses.
ConvRunner make_conv_runner(const ConvStrategy& strategy, const Context& context,
                            const ConvProblem& problem, std::string_view policy);

/// Whether the automatic choice of that name may launch `direct` for all members at once.
bool conv_takes_direct(const ConvProblem& problem, const DeviceInfo& device,
                       std::string_view automatic);

/// Describes the kernel that stands in for cuDNN: own_kernel_text() by this build's evidence.
std::string conv_direct_text(const ConvProblem& problem, const DeviceInfo& device);

/// Why the strategy cannot run the problem, which has no idle axes, on the device; empty where it
/// can.
std::string conv_unsupported_reason(const ConvStrategy& strategy, const ConvProblem& problem,
                                    const DeviceInfo& device);

using ConvChoice = StrategyChoice<const ConvStrategy*>;

/// Why the vendor's library does not take the problem by this strategy and policy; empty where it
/// does. Called only for a strategy that is taken if it is empty.
using ConvVendorRefusal =
    std::function<std::string(const ConvStrategy& strategy, std::string_view policy)>;

/// The strategy of that name, or for "auto" the first that can run, is expected to win and is the
/// vendor's and not refused, the CPU's or in `verified` under conv1d and conv2d, of volumes under
/// conv3d; else `sequential`; else one that is not expected to win. Throws invalid_argument for an
/// unknown name, unsupported with the reason for one that cannot run.
ConvChoice choose_conv_strategy(const ConvProblem& problem, const DeviceInfo& device,
                                std::string_view name, std::span<const VerifiedStrategy> verified,
                                const ConvVendorRefusal& refusal, const Tuning& tuning = {});

}  // namespace wide
