// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How passes make a graph of another: node by node, every value of the old graph knowing its own in
// the new one.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "wide/graph.hpp"

namespace wide {

class Rewrite {
 public:
  /// Begins with the inputs and parameters of `graph`; those parameters that `keeps` refuses are
  /// left out.
  explicit Rewrite(const Graph& graph, const std::function<bool(Value)>& keeps = {});

  const Graph& graph() const { return graph_; }
  GraphBuilder& builder() { return builder_; }
  /// Absent for what is absent. Throws std::logic_error where the new graph has no such value yet:
  /// a pass that reads it there puts nodes in a wrong order.
  Value operator()(Value old) const;
  void replace(Value old, Value by) { new_values_[static_cast<size_t>(old.index)] = by; }
  /// As it is.
  void copy(const Node& node);
  /// Another operation in a node's place, that computes what `outputs` of the old graph are.
  void append(const std::string& name, const Operation& operation, std::vector<Operand> operands,
              const std::vector<Value>& outputs);
  /// `wanted`, or what is like it and no name of the old graph.
  std::string free_name(std::string wanted) const;
  /// Operands of the old graph as those of the new one.
  std::vector<Operand> operands(const Node& node) const;
  Graph finish();

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<Value> new_values_;
  std::set<std::string, std::less<>> names_;  ///< of the old graph
};

/// Who reads the values of a graph, which must outlive this: as operands and as outputs.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  /// How often a value is read.
  int count(Value value) const { return all_[static_cast<size_t>(value.index)].count; }
  /// The one node that reads it; nullptr where there are more, or none, or it is an output.
  const Node* only(Value value) const {
    const Reader& reader = all_[static_cast<size_t>(value.index)];
    return reader.count == 1 ? reader.node : nullptr;
  }

 private:
  struct Reader {
    int count = 0;
    const Node* node = nullptr;
  };
  std::vector<Reader> all_;
};

}  // namespace wide
