// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shapes and nodes in messages about graphs.
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

/// "model: fc1 (linear): "
inline std::string node_text(const Graph& graph, const Node& node) {
  return "model: " + node.name + " (" + std::string(operation_name(graph, node)) + "): ";
}

}  // namespace wide
