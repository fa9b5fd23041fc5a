// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between layouts: a transpose that keeps the order, whose result lies as its reader needs.
// They come before the node that needs them, or after a view that others cannot read, whatever the
// layout of members in the viewed value. Operands of one value share its copy until that lies wrong
// for one of them, too.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "host/model/batch.hpp"
#include "host/model/move.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

constexpr const char* kOutput = "y";  ///< among names of operands

/// The operand to copy: the one that is named, else the first, of those that are not copied yet.
const Operand* choose(const Graph& graph, const Node& node, Value named,
                      const std::set<std::string>& copied) {
  const Operand* first = nullptr;
  for (const Operand& operand : node.operands) {
    if (!is_batched(graph, operand.value) || copied.contains(operand.name)) continue;
    if (operand.value == named) return &operand;
    if (first == nullptr) first = &operand;
  }
  return first;
}

/// An operand that reads a copy together with another one; where a copy is named, that one.
const Operand* sharer(const Node& node, Value named, const std::set<std::string>& copied) {
  for (const Operand& operand : node.operands) {
    const bool is_meant = named.is_absent() || operand.value == named;
    if (!is_meant || !copied.contains(operand.name)) continue;
    const auto readers =
        std::count_if(node.operands.begin(), node.operands.end(),
                      [&](const Operand& other) { return other.value == operand.value; });
    if (readers > 1) return &operand;
  }
  return nullptr;
}

/// A value of the new graph, `old` of the old one, in a layout of its own.
Value copy_of(Rewrite& rewrite, const std::string& name, Value old) {
  std::vector<int64_t> order;
  for (int axis = 0; axis < rewrite.graph().type(old).shape.rank(); ++axis) order.push_back(axis);
  return rewrite.builder().append(name, TransposeOp{Dims(order)}, {{"x", rewrite(old)}});
}

}  // namespace

Graph Moves::insert(const Graph& graph, const MoveNeeded& needed, Notes& notes) {
  const auto is_asker = [&](const Node& node) { return node.name == needed.node(); };
  // Asked for beside the graph's nodes, such as by an output: a copy here would not help.
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_asker)) throw needed;
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) {
    if (is_asker(node)) {
      copy_for(node, needed, rewrite, notes);
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

void Moves::copy_for(const Node& node, const MoveNeeded& needed, Rewrite& rewrite, Notes& notes) {
  std::set<std::string>& copied = copied_[node.name];
  const std::string number = copied.empty() ? "" : std::to_string(copied.size() + 1);
  const std::string name = rewrite.free_name(node.name + ".copy" + number);
  const Value y = node.outputs[0];
  if (needed.value() == y && copied.insert(kOutput).second) {
    rewrite.copy(node);
    rewrite.replace(y, copy_of(rewrite, name, y));
    notes.push_back(node.name + ": the result is copied, to lie as others read it");
    return;
  }
  std::vector<Operand> operands = rewrite.operands(node);
  if (const Operand* operand = choose(rewrite.graph(), node, needed.value(), copied)) {
    const Value copy = copy_of(rewrite, name, operand->value);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (node.operands[i].value != operand->value) continue;
      operands[i].value = copy;  // one for all that read it
      copied.insert(operands[i].name);
    }
    notes.push_back(node.name + ": " + operand->name + " is copied, to lie as the node reads it");
  } else if (const Operand* other = sharer(node, needed.value(), copied)) {
    const Node* own = rewrite.graph().producer(other->value);
    operands[static_cast<size_t>(other - node.operands.data())].value = rewrite(own->operand("x"));
    copied.erase(other->name);
    notes.push_back(node.name + ": " + other->name + " reads what was copied, not the copy");
  } else {
    throw needed;
  }
  rewrite.append(node.name, node.operation, std::move(operands), node.outputs);
}

}  // namespace wide
