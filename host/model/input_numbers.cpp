// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/input_numbers.hpp"

#include <algorithm>
#include <optional>

namespace wide {

namespace {

/// The value whose elements another one has, perhaps in another shape and not all of them.
Value moved_from(const Graph& graph, Value value) {
  const Node* node = value.is_absent() ? nullptr : graph.producer(value);
  const bool moves = node != nullptr && (std::holds_alternative<ReshapeOp>(node->operation) ||
                                         std::holds_alternative<SliceOp>(node->operation) ||
                                         std::holds_alternative<TransposeOp>(node->operation));
  return moves ? moved_from(graph, node->operand("x")) : value;
}

/// What key_lengths count the positions of.
Value keys_of(const Node& node) {
  for (const char* name : {"key", "k", "x"}) {
    if (const Value keys = node.operand(name); !keys.is_absent()) return keys;
  }
  return {};
}

}  // namespace

InputNumbers input_numbers(const Graph& graph, Value input) {
  std::optional<InputNumbers> known;
  const auto limit = [&](int64_t first, int64_t last) {
    known = known ? InputNumbers{std::max(known->first, first), std::min(known->last, last)}
                  : InputNumbers{first, last};
  };
  for (const Node& node : graph.nodes()) {
    if (moved_from(graph, node.operand("ids")) == input)
      limit(0, graph.type(node.operand("table")).shape[0] - 1);
    if (moved_from(graph, node.operand("key_lengths")) == input)
      limit(1, graph.type(keys_of(node)).shape[1]);
  }
  return known.value_or(InputNumbers{});
}

}  // namespace wide
