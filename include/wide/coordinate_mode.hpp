// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where interpolate's outputs lie between the positions of x (wide/interpolate.hpp has the
// formulas). The names are ONNX's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class CoordinateMode : uint8_t {
  half_pixel,          ///< positions are the middles of pixels; PyTorch's align_corners=False
  pytorch_half_pixel,  ///< the same, but a single output is position 0
  align_corners,       ///< the first and the last outputs are the first and the last positions
  asymmetric,          ///< positions are the beginnings of pixels
};

constexpr std::string_view coordinate_mode_name(CoordinateMode mode) {
  switch (mode) {
    case CoordinateMode::half_pixel:
      return "half_pixel";
    case CoordinateMode::pytorch_half_pixel:
      return "pytorch_half_pixel";
    case CoordinateMode::align_corners:
      return "align_corners";
    case CoordinateMode::asymmetric:
      return "asymmetric";
  }
  return "?";
}

inline constexpr auto kAllCoordinateModes = enumerators<CoordinateMode, coordinate_mode_name>();

constexpr std::optional<CoordinateMode> parse_coordinate_mode(std::string_view name) {
  return parse_enumerator(name, kAllCoordinateModes, coordinate_mode_name);
}

}  // namespace wide
