// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/wide_strategy.hpp"

#include <array>

#include "host/core/plan_checks.hpp"

namespace wide {

std::string_view strategy_name(WideStrategy strategy) {
  return strategy == WideStrategy::wide ? "wide" : "sequential";
}

WideChoice choose_wide_strategy(std::string_view primitive, const DeviceInfo& device,
                                std::string_view name, bool wide_is_verified) {
  static constexpr std::array<std::string_view, 3> kNames{"auto", "sequential", "wide"};
  require_known_strategy(primitive, name, kNames);
  using enum WideStrategy;
  if (name != "auto") {
    return {name == "wide" ? wide : sequential, std::string(name) + ": asked for by name"};
  }
  if (device.device.type == DeviceType::cpu) {
    return {wide, "wide: one pass over all members keeps every thread busy"};
  }
  if (wide_is_verified) return {wide, "wide: one launch for all members"};
  return {sequential, "sequential: wide is unverified on compute capability " +
                          std::to_string(device.compute_capability)};
}

}  // namespace wide
