// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A node's operands as its inference uses them: by name, with messages that name the node.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/model/batch.hpp"
#include "host/model/shape_text.hpp"
#include "wide/error.hpp"
#include "wide/graph.hpp"

namespace wide::infer_detail {

/// A node's operands, looked up by name.
class Operands {
 public:
  Operands(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw_invalid_argument("graph: " + node_.name + ": " + message);
  }
  void require(bool holds, const std::string& message) const {
    if (!holds) fail(message);
  }

  /// A primitive's own check of an operation's fields, its message after the node's name.
  template <class Check>
  void require_accepted(const Check& check) const {
    try {
      check();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      fail(error.what());
    }
  }

  bool has(std::string_view name) const { return !node_.operand(name).is_absent(); }
  bool is_parameter(std::string_view name) const { return !is_batched(type(name).shape); }
  const ValueType& type(std::string_view name) const {
    require(has(name), text(name) + " is absent, expected one");
    return graph_.type(node_.operand(name));
  }
  /// An activation: its first axis is the batch.
  const ValueType& activation(std::string_view name, int min_rank, int max_rank) const {
    const ValueType& t = type(name);
    require(!is_parameter(name), text(name) + " is a parameter of shape " + shape_text(t.shape) +
                                     ", expected a value with a batch");
    require(t.shape.rank() >= min_rank && t.shape.rank() <= max_rank,
            text(name) + " is " + shape_text(t.shape) + ", expected " + text(min_rank) +
                (min_rank == max_rank ? "" : " to " + text(max_rank)) + " axes");
    return t;
  }
  /// Requires a dtype for computing.
  void require_floating(std::string_view name, Dtype dtype) const {
    require(dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16,
            text(name) + " is " + text(dtype_name(dtype)) + ", expected fp32, fp16 or bf16");
  }
  const ValueType& floating(std::string_view name, int min_rank, int max_rank) const {
    const ValueType& t = activation(name, min_rank, max_rank);
    require_floating(name, t.dtype);
    return t;
  }
  /// A parameter of this shape; kBatch in it stands for any extent.
  const ValueType& parameter(std::string_view name, const Shape& expected, Dtype dtype) const {
    const ValueType& t = type(name);
    require(is_parameter(name), text(name) + " is computed, of shape " + shape_text(t.shape) +
                                    ", expected a parameter");
    bool fits = t.shape.rank() == expected.rank();
    for (int axis = 0; fits && axis < expected.rank(); ++axis) {
      fits = expected[axis] == kBatch || expected[axis] == t.shape[axis];
    }
    std::string wanted = shape_text(expected);
    std::replace(wanted.begin(), wanted.end(), 'B', '*');
    require(fits, text(name) + " is " + shape_text(t.shape) + ", expected " + wanted);
    require(t.dtype == dtype, text(name) + " is " + text(dtype_name(t.dtype)) + ", expected " +
                                  text(dtype_name(dtype)));
    return t;
  }
  const ValueType& floating_parameter(std::string_view name, const Shape& expected) const {
    require_floating(name, type(name).dtype);
    return parameter(name, expected, type(name).dtype);
  }
  void optional_parameter(std::string_view name, const Shape& expected, Dtype dtype) const {
    if (has(name)) parameter(name, expected, dtype);
  }
  void same(std::string_view name, const ValueType& expected) const {
    const ValueType& t = type(name);
    require(t == expected,
            text(name) + " is " + to_string(t) + ", expected " + to_string(expected));
  }
  void residual(Residual where, const ValueType& y) const {
    require(has("residual") == (where != Residual::none),
            has("residual") ? "residual is present, expected none: the operation adds none"
                            : "residual is absent, expected one: the operation adds it");
    if (has("residual")) same("residual", y);
  }
  /// Throws for operands other than these.
  void only(std::initializer_list<std::string_view> names) const {
    for (const Operand& operand : node_.operands) {
      require(std::find(names.begin(), names.end(), operand.name) != names.end(),
              "operand " + operand.name + " is unknown to this operation");
    }
  }
  const Node& node() const { return node_; }
  const Graph& graph() const { return graph_; }

 private:
  const Graph& graph_;
  const Node& node_;
};

inline ValueType with_last(ValueType type, int64_t last) {
  type.shape[type.shape.rank() - 1] = last;
  return type;
}

using Types = std::vector<ValueType>;
Types infer(const MatmulOp& op, const Operands& at);
Types infer(const AttentionOp& op, const Operands& at);
Types infer(const FlashAttentionOp& op, const Operands& at);
Types infer(const RecurrentOp& op, const Operands& at);
Types infer(const ConvOp& op, const Operands& at);
Types infer(const ConvTransposeOp& op, const Operands& at);
Types infer(const DepthToSpaceOp& op, const Operands& at);
Types infer(const UpsampleOp& op, const Operands& at);
Types infer(const ConvPhasesOp& op, const Operands& at);
Types infer(const PoolingOp& op, const Operands& at);
Types infer(const InterpolateOp& op, const Operands& at);

}  // namespace wide::infer_detail
