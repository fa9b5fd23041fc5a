// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies and replacements of nodes.
#include "host/model/rewrite.hpp"

#include <stdexcept>
#include <utility>

namespace wide {

Rewrite::Rewrite(const Graph& graph, const std::function<bool(Value)>& keeps, bool shares_inputs)
    : graph_(graph), builder_(graph.name()), new_values_(static_cast<size_t>(graph.num_values())) {
  for (const Value input : graph.inputs()) {
    const ValueType& type = graph.type(input);
    const bool is_shared = shares_inputs || graph.kind(input) == ValueKind::shared_input;
    replace(input, is_shared ? builder_.shared_input(graph.name(input), type.shape, type.dtype)
                             : builder_.input(graph.name(input), type.shape, type.dtype));
  }
  for (const Value parameter : graph.parameters()) {
    if (keeps && !keeps(parameter)) continue;
    const ValueType& type = graph.type(parameter);
    replace(parameter, builder_.parameter(graph.name(parameter), type.shape, type.dtype));
  }
  for (int32_t i = 0; i < graph.num_values(); ++i) names_.insert(graph.name(Value{i}));
  for (const Node& node : graph.nodes()) names_.insert(node.name);
  for (const Operand& output : graph.outputs()) names_.insert(output.name);
}

std::string Rewrite::free_name(std::string wanted) const {
  while (names_.contains(wanted)) wanted += "_";
  return wanted;
}

Value Rewrite::operator()(Value old) const {
  if (old.is_absent()) return {};
  const Value value = new_values_[static_cast<size_t>(old.index)];
  if (value.is_absent()) {
    throw std::logic_error("rewrite: " + graph_.name(old) + " of " + graph_.name() +
                           " is read before it is rewritten");
  }
  return value;
}

std::vector<Operand> Rewrite::operands(const Node& node) const {
  std::vector<Operand> list;
  for (const Operand& operand : node.operands)
    list.push_back({operand.name, (*this)(operand.value)});
  return list;
}

void Rewrite::copy(const Node& node) {
  append(node.name, node.operation, operands(node), node.outputs);
}

void Rewrite::append(const std::string& name, const Operation& operation,
                     std::vector<Operand> operands, const std::vector<Value>& outputs) {
  if (outputs.size() == 2) {
    const auto [y, second] = builder_.append_two(name, operation, std::move(operands));
    replace(outputs[0], y);
    replace(outputs[1], second);
  } else {
    replace(outputs[0], builder_.append(name, operation, std::move(operands)));
  }
}

Graph Rewrite::finish() {
  for (const Operand& output : graph_.outputs()) {
    builder_.output(output.name, (*this)(output.value));
  }
  return std::move(builder_).build();
}

Readers::Readers(const Graph& graph) : all_(static_cast<size_t>(graph.num_values())) {
  for (const Node& node : graph.nodes()) {
    for (const Operand& operand : node.operands) {
      Reader& reader = all_[static_cast<size_t>(operand.value.index)];
      ++reader.count;
      reader.node = &node;
    }
  }
  for (const Operand& output : graph.outputs()) {
    ++all_[static_cast<size_t>(output.value.index)].count;
  }
}

}  // namespace wide
