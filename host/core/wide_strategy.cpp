// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/wide_strategy.hpp"

#include <array>
#include <vector>

#include "host/core/heuristic_policy.hpp"
#include "kernels/common/grid_blocks.hpp"

namespace wide {

std::string_view strategy_name(WideStrategy strategy) {
  static constexpr std::array<std::string_view, 3> kNames{"sequential", "wide", "cudnn"};
  return kNames[static_cast<size_t>(strategy)];
}

LaunchRefusal launch_refusal(std::string_view what, int64_t num_members,
                             const std::function<int64_t(int64_t)>& count) {
  const auto reason = [&](const char* launch, int64_t members) -> std::string {
    if (count(members) <= kernels::kMaxGridBlocks) return "";
    return std::string(launch) + " has more than 2^31 - 1 " + std::string(what);
  };
  return {reason("one launch for all members", num_members), reason("a launch for a member", 1)};
}

namespace {

std::string launch_reason(WideStrategy strategy, const LaunchRefusal& launches,
                          const DeviceInfo& device) {
  if (device.device.type == DeviceType::cpu || strategy == WideStrategy::cudnn) return "";
  return strategy == WideStrategy::wide ? launches.wide : launches.sequential;
}

}  // namespace

std::string wide_policy_reason(std::string_view strategy, std::string_view policy) {
  return cudnn_policy_reason(strategy, strategy == strategy_name(WideStrategy::cudnn), policy);
}

WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified,
                                const LaunchRefusal& launches, const VendorCall& cudnn_call,
                                const Tuning& tuning) {
  using enum WideStrategy;
  using enum DeviceType;
  using Row = StrategyRow<WideStrategy, LaunchRefusal>;
  std::vector<Row> table{{wide, cuda, false, "one launch for all members"},
                         {sequential, cuda, false, "member after member"},
                         {wide, cpu, false, "one pass over all members keeps every thread busy"},
                         {sequential, cpu, false, "member after member"}};
  if (cudnn_call.refusal) {
    table.insert(table.begin() + 1, Row{cudnn, cuda, true, "one call for all members"});
  }
  return choose_strategy<WideStrategy, LaunchRefusal>(
      {primitive, device, name, [&](std::string_view) { return wide_is_verified; },
       cudnn_call.refusal ? "" : "wide", tuning, cudnn_call.policy_reason},
      table, launches, launch_reason,
      [&](WideStrategy, std::string_view policy) { return cudnn_call.refusal(policy); });
}

}  // namespace wide
