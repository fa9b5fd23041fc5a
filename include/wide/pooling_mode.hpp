// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How pooling reduces a window to one number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class PoolingMode : uint8_t {
  max,               ///< keeps NaN; padding is never the largest
  average,           ///< of the window
  adaptive_average,  ///< windows that divide x into as many parts as y has outputs
};

constexpr std::string_view pooling_mode_name(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::max:
      return "max";
    case PoolingMode::average:
      return "average";
    case PoolingMode::adaptive_average:
      return "adaptive_average";
  }
  return "?";
}

inline constexpr auto kAllPoolingModes = enumerators<PoolingMode, pooling_mode_name>();

constexpr std::optional<PoolingMode> parse_pooling_mode(std::string_view name) {
  return parse_enumerator(name, kAllPoolingModes, pooling_mode_name);
}

}  // namespace wide
