// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/wide_strategy.hpp"

#include <array>
#include <span>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "kernels/common/grid_blocks.hpp"

namespace wide {

std::string_view strategy_name(WideStrategy strategy) {
  static constexpr std::array<std::string_view, 3> kNames{"sequential", "wide", "cudnn"};
  return kNames[static_cast<size_t>(strategy)];
}

LaunchRefusal launch_refusal(std::string_view what, int64_t num_members,
                             const std::function<int64_t(int64_t)>& count) {
  const auto reason = [&](const char* launch, int64_t members) -> std::string {
    if (count(members) <= kernels::kMostBlocks) return "";
    return std::string(launch) + " has more than 2^31 - 1 " + std::string(what);
  };
  return {reason("one launch for all members", num_members), reason("a launch for a member", 1)};
}

WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified,
                                const LaunchRefusal& launches, const VendorRefusal& cudnn_refusal) {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "sequential", "wide", "cudnn"};
  const bool knows_cudnn = cudnn_refusal && device.device.type == DeviceType::cuda;
  require_known_strategy(primitive, name, std::span(kNames).first(knows_cudnn ? 4 : 3));
  using enum WideStrategy;
  const bool is_cpu = device.device.type == DeviceType::cpu;
  const auto require_launch = [&](WideStrategy strategy, const std::string& reason) {
    if (is_cpu || reason.empty()) return;
    throw_unsupported(std::string(primitive) + ": " + std::string(strategy_name(strategy)) + ": " +
                      reason);
  };
  for (const WideStrategy strategy : {sequential, wide, cudnn}) {
    if (name != strategy_name(strategy)) continue;
    if (strategy != cudnn) {
      require_launch(strategy, strategy == wide ? launches.wide : launches.sequential);
    }
    return {strategy, std::string(name) + ": asked for by name"};
  }
  if (is_cpu) return {wide, "wide: one pass over all members keeps every thread busy"};
  if (wide_is_verified && launches.wide.empty()) return {wide, "wide: one launch for all members"};
  const std::string why = wide_is_verified ? launches.wide
                                           : "wide is unverified on compute capability " +
                                                 std::to_string(device.compute_capability);
  const std::string refusal = knows_cudnn ? cudnn_refusal() : "";
  if (knows_cudnn && refusal.empty()) return {cudnn, "cudnn: one call for all members, " + why};
  require_launch(sequential, launches.sequential);
  return {sequential, "sequential: " + why + (refusal.empty() ? "" : "; " + refusal)};
}

}  // namespace wide
