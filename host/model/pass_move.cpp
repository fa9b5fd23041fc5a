// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between layouts: a transpose that keeps the order, whose result lies as its reader wants.
#include <vector>

#include "host/model/move.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

bool is_activation(const Graph& graph, Value value) {
  const Shape& shape = graph.type(value).shape;
  return shape.rank() > 0 && shape[0] == kBatch;
}

/// The operand that is copied at the k-th try: the one that is named, then each other one.
const Operand* choose(const Graph& graph, const Node& node, Value named, int attempt) {
  std::vector<const Operand*> activations;
  for (const Operand& operand : node.operands) {
    if (!is_activation(graph, operand.value)) continue;
    const bool is_named = operand.value == named;
    activations.insert(is_named ? activations.begin() : activations.end(), &operand);
  }
  const auto at = static_cast<size_t>(attempt);
  return at < activations.size() ? activations[at] : nullptr;
}

}  // namespace

Graph Moves::insert(const Graph& graph, const MoveNeeded& needed, Notes& notes) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (node.name == needed.node()) {
      int& tries = tries_[node.name];
      const Operand* operand = choose(graph, node, needed.value(), tries++);
      if (operand == nullptr) throw needed;
      const ValueType& type = graph.type(operand->value);
      std::vector<int64_t> order;
      for (int axis = 0; axis < type.shape.rank(); ++axis) order.push_back(axis);
      const Value before = rewrite(operand->value);
      const Value copy =
          rewrite.builder().append(node.name + ".copy" + (tries == 1 ? "" : std::to_string(tries)),
                                   TransposeOp{Dims(order)}, {{"x", before}});
      notes.push_back(node.name + ": " + operand->name + " is copied, to lie as the node reads it");
      rewrite.replace(operand->value, copy);
      rewrite.copy(node);
      rewrite.replace(operand->value, before);
      continue;
    }
    rewrite.copy(node);
  }
  return rewrite.finish();
}

}  // namespace wide
