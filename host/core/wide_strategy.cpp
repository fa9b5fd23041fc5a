// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/wide_strategy.hpp"

#include <array>
#include <span>

#include "host/core/plan_checks.hpp"

namespace wide {

std::string_view strategy_name(WideStrategy strategy) {
  static constexpr std::array<std::string_view, 3> kNames{"sequential", "wide", "cudnn"};
  return kNames[static_cast<size_t>(strategy)];
}

WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified,
                                const VendorRefusal& cudnn_refusal) {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "sequential", "wide", "cudnn"};
  const bool knows_cudnn = cudnn_refusal && device.device.type == DeviceType::cuda;
  require_known_strategy(primitive, name, std::span(kNames).first(knows_cudnn ? 4 : 3));
  using enum WideStrategy;
  for (const WideStrategy strategy : {sequential, wide, cudnn}) {
    if (name == strategy_name(strategy))
      return {strategy, std::string(name) + ": asked for by name"};
  }
  if (device.device.type == DeviceType::cpu) {
    return {wide, "wide: one pass over all members keeps every thread busy"};
  }
  if (wide_is_verified) return {wide, "wide: one launch for all members"};
  const std::string why =
      "wide is unverified on compute capability " + std::to_string(device.compute_capability);
  const std::string refusal = knows_cudnn ? cudnn_refusal() : "";
  if (knows_cudnn && refusal.empty()) return {cudnn, "cudnn: one call for all members, " + why};
  return {sequential, "sequential: " + why + (refusal.empty() ? "" : "; " + refusal)};
}

}  // namespace wide
