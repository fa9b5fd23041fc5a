// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the scores by which members are chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

/// The weight of a chosen member's result, by its score.
enum class GateFunction : uint8_t {
  softmax,      ///< over the chosen ones, which add up to 1: that of all, renormalised
  softmax_all,  ///< over all members: the chosen ones add up to less
  sigmoid,      ///< of each score on its own
  none,         ///< the score itself
};

constexpr std::string_view gate_function_name(GateFunction function) {
  switch (function) {
    case GateFunction::softmax:
      return "softmax";
    case GateFunction::softmax_all:
      return "softmax_all";
    case GateFunction::sigmoid:
      return "sigmoid";
    case GateFunction::none:
      return "none";
  }
  return "?";
}

inline constexpr auto kAllGateFunctions = enumerators<GateFunction, gate_function_name>();

constexpr std::optional<GateFunction> parse_gate_function(std::string_view name) {
  return parse_enumerator(name, kAllGateFunctions, gate_function_name);
}

}  // namespace wide
