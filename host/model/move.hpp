// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between layouts, where members cannot lie as all that read a value want them to.
#pragma once

#include <map>
#include <string>

#include "host/model/passes.hpp"
#include "wide/error.hpp"

namespace wide {

/// A node that cannot read an operand where it lies.
class MoveNeeded : public Error {
 public:
  /// `value` is absent where it is not known which operand it is.
  MoveNeeded(std::string node, Value value, const std::string& message)
      : Error(ErrorCode::unsupported, message), node_(std::move(node)), value_(value) {}
  const std::string& node() const noexcept { return node_; }
  Value value() const noexcept { return value_; }

 private:
  std::string node_;
  Value value_;
};

/// Copies in front of the nodes that need them.
class Moves {
 public:
  /// Puts one in; throws what was needed where it is there already.
  Graph insert(const Graph& graph, const MoveNeeded& needed, Notes& notes);

 private:
  std::map<std::string, int, std::less<>> tries_;  ///< by node
};

}  // namespace wide
