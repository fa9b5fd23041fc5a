// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between layouts, where the readers of a value need different layouts of members.
#pragma once

#include <map>
#include <set>
#include <string>

#include "host/model/passes.hpp"
#include "wide/error.hpp"

namespace wide {

/// A node that cannot read an operand in place, or whose result others cannot.
class MoveNeeded : public Error {
 public:
  /// `value`, the operand or the result, is absent where it is not known which operand it is.
  MoveNeeded(std::string node, Value value, const std::string& message)
      : Error(ErrorCode::unsupported, message), node_(std::move(node)), value_(value) {}
  const std::string& node() const noexcept { return node_; }
  Value value() const noexcept { return value_; }

 private:
  std::string node_;
  Value value_;
};

class Rewrite;

/// Copies before the nodes that need them, or after them.
class Moves {
 public:
  /// Inserts one; throws `needed` where everything that would help is copied already.
  Graph insert(const Graph& graph, const MoveNeeded& needed, Notes& notes);

 private:
  void copy_for(const Node& node, const MoveNeeded& needed, Rewrite& rewrite, Notes& notes);
  std::map<std::string, std::set<std::string>> copied_;  ///< by node: names of its operands
};

}  // namespace wide
