// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice of primitives that have one kernel: `wide` runs it for all members at once,
// `sequential` member by member, and where cuDNN has the primitive, `cudnn` is its call. A pure
// function of the device, of what has been verified and of what cuDNN answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "host/core/strategy_choice.hpp"
#include "wide/device.hpp"

namespace wide {

enum class WideStrategy : uint8_t { sequential, wide, cudnn };

std::string_view strategy_name(WideStrategy strategy);

using WideChoice = StrategyChoice<WideStrategy>;

/// Why our kernel cannot be launched once for all members, and once for each; empty where it can.
/// Irrelevant on the CPU.
struct LaunchRefusal {
  std::string wide, sequential;
};

/// count(members): how many of `what`, such as "blocks", a launch of this many members has; a grid
/// has up to 2^31 - 1.
LaunchRefusal launch_refusal(std::string_view what, int64_t num_members,
                             const std::function<int64_t(int64_t)>& count);

/// Why a vendor's library does not take a problem by a policy, of which the empty one is its first;
/// empty where it does. Answering makes a plan of the library, which may take seconds: called only
/// where "auto" depends on it.
using VendorRefusal = std::function<std::string(std::string_view policy)>;

/// A vendor's call for all members.
struct VendorCall {
  VendorRefusal refusal{};       ///< null: there is none
  PolicyReason policy_reason{};  ///< null: it has no policies
};

/// Of `cudnn`, which has cuDNN's policies, beside strategies that have none.
std::string wide_policy_reason(std::string_view strategy, std::string_view policy);

/// `wide_is_verified`: on this device's compute capability; irrelevant on the CPU. "auto" is `wide`
/// where it is verified and can be launched, else `cudnn` where cuDNN takes the problem, else
/// `sequential`. Throws invalid_argument for an unknown name, unsupported with the reason where
/// what remains cannot be launched.
WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified,
                                const LaunchRefusal& launches = {},
                                const VendorCall& cudnn_call = {}, const Tuning& tuning = {});

}  // namespace wide
