// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How passes make a graph from another: node by node, mapping every value of the old graph to the
// new one's.
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
  /// left out. `shares_inputs`: all of these are one for all members.
  explicit Rewrite(const Graph& graph, const std::function<bool(Value)>& keeps = {},
                   bool shares_inputs = false);

  const Graph& graph() const { return graph_; }
  GraphBuilder& builder() { return builder_; }
  /// Absent for absent values. Throws std::logic_error where the new graph has no such value yet:
  /// a pass that reads it there puts nodes in a wrong order.
  Value operator()(Value old) const;
  void replace(Value old, Value by) { new_values_[static_cast<size_t>(old.index)] = by; }
  /// Copies a node unchanged.
  void copy(const Node& node);
  /// Another operation in a node's place, which computes `outputs` of the old graph.
  void append(const std::string& name, const Operation& operation, std::vector<Operand> operands,
              const std::vector<Value>& outputs);
  /// `wanted`, or a similar name that the old graph does not have.
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

/// The readers of a graph's values, as operands and as outputs. The graph must outlive this.
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
