// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which values of a graph have the batch.
#pragma once

#include "wide/graph.hpp"

namespace wide {

/// Whether a value has the batch in front; all others are parameters, or computed of parameters.
inline bool is_batched(const Shape& shape) {
  return shape.rank() > 0 && shape[0] == kBatch;
}
inline bool is_batched(const Graph& graph, Value value) {
  return is_batched(graph.type(value).shape);
}

}  // namespace wide
