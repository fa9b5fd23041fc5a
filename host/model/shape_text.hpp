// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shapes in messages about graphs.
#pragma once

#include <string>

#include "wide/graph.hpp"

namespace wide {

/// [B, 64]
inline std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    out += axis == 0 ? "" : ", ";
    out += shape[axis] == kBatch ? "B" : std::to_string(shape[axis]);
  }
  return out + "]";
}

}  // namespace wide
