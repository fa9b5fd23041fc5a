// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs and their builder. Values and nodes are numbered in the order in which they are made, so
// that every graph is sorted: no pass has to.
#include "wide/graph.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <utility>

#include "host/core/check.hpp"
#include "host/model/batch.hpp"
#include "host/model/shape_text.hpp"

namespace wide {

Value Node::operand(std::string_view operand_name) const {
  for (const Operand& operand : operands) {
    if (operand.name == operand_name) return operand.value;
  }
  return {};
}

const Graph::Info& Graph::at(Value value) const {
  WIDE_REQUIRE(!value.is_absent(), "graph: a value is absent, expected one of " + name_ + "'s");
  WIDE_REQUIRE(value.index >= 0 && value.index < num_values(),
               "graph: value " + std::to_string(value.index) + " is none of the " +
                   std::to_string(num_values()) + " of " + name_);
  return values_[static_cast<size_t>(value.index)];
}

const Node* Graph::producer(Value value) const {
  const int32_t index = at(value).producer;
  return index < 0 ? nullptr : &nodes_[static_cast<size_t>(index)];
}

Value Graph::find_parameter(std::string_view parameter_name) const {
  for (const Value parameter : parameters_) {
    if (name(parameter) == parameter_name) return parameter;
  }
  return {};
}

int64_t Graph::num_parameters() const {
  int64_t total = 0;
  for (const Value parameter : parameters_) total += num_elements(type(parameter).shape);
  return total;
}

namespace {

/// A builder's number: no two that live at the same time share one, except copies.
uint32_t next_number() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, Dtype dtype) : dtype_(dtype), number_(next_number()) {
  graph_.name_ = std::move(name);
  WIDE_REQUIRE(dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16,
               "graph: " + graph_.name_ + ": dtype is " + std::string(dtype_name(dtype)) +
                   ", expected fp32, fp16 or bf16");
}

void GraphBuilder::require_own(const std::string& what, Value value) const {
  WIDE_REQUIRE(value.builder == 0 || value.builder == number_,
               "graph: " + what + "value " + std::to_string(value.index) +
                   " is another GraphBuilder's, expected one of " + graph_.name_ + "'s");
}

const ValueType& GraphBuilder::type(Value value) const {
  require_own("", value);
  return graph_.type(value);
}

Value GraphBuilder::add_value(const std::string& name, ValueType type, ValueKind kind,
                              int32_t producer) {
  int64_t bytes = dtype_bytes(type.dtype);
  for (const int64_t extent : type.shape) {
    const bool fits = extent == kBatch || !__builtin_mul_overflow(bytes, extent, &bytes);
    WIDE_REQUIRE(fits, "graph: " +
                           std::string(kind == ValueKind::computed    ? ""
                                       : kind == ValueKind::parameter ? "parameter "
                                                                      : "input ") +
                           name + " is " + shape_text(type.shape) + " of " +
                           std::string(dtype_name(type.dtype)) +
                           ", expected fewer bytes than 64 bits count");
  }
  graph_.values_.push_back({std::move(type), kind, name, producer});
  return {static_cast<int32_t>(graph_.values_.size()) - 1, number_};
}

Value GraphBuilder::declare(const std::string& name, const Shape& shape, Dtype dtype,
                            ValueKind kind) {
  const bool is_parameter = kind == ValueKind::parameter;
  const std::string what = is_parameter ? "parameter" : "input";
  WIDE_REQUIRE(!name.empty(), "graph: " + graph_.name_ + ": an " + what + " has no name");
  const auto known = names_.find(name);
  WIDE_REQUIRE(known == names_.end(), "graph: " + graph_.name_ + ": " + what + " " + name +
                                          ", expected another "
                                          "name: there is such a" +
                                          (known->second == "input" ? "n " : " ") + known->second);
  const bool has_batch = is_batched(shape);
  WIDE_REQUIRE(is_parameter || has_batch,
               "graph: input " + name + " is " + shape_text(shape) +
                   ", expected a shape that begins with the batch, -1 (kBatch, WIDE_BATCH)");
  for (int axis = has_batch && !is_parameter ? 1 : 0; axis < shape.rank(); ++axis) {
    WIDE_REQUIRE(shape[axis] >= 1, "graph: " + what + " " + name + " is " + shape_text(shape) +
                                       ", expected extents of at least 1" +
                                       (is_parameter ? "" : " after the batch"));
  }
  // One more axis, that of the members, must fit.
  WIDE_REQUIRE(shape.rank() < kMaxRank, "graph: " + what + " " + name + " is " + shape_text(shape) +
                                            ", expected at most " + std::to_string(kMaxRank - 1) +
                                            " axes");
  const Rollback rollback(*this);
  const Value value = add_value(name, {dtype, shape}, kind, -1);
  names_.emplace(name, what);
  (is_parameter ? graph_.parameters_ : graph_.inputs_).push_back(value);
  return value;
}

Value GraphBuilder::input(const std::string& name, const Shape& shape) {
  return input(name, shape, dtype_);
}
Value GraphBuilder::input(const std::string& name, const Shape& shape, Dtype dtype) {
  return declare(name, shape, dtype, ValueKind::input);
}
Value GraphBuilder::shared_input(const std::string& name, const Shape& shape) {
  return shared_input(name, shape, dtype_);
}
Value GraphBuilder::shared_input(const std::string& name, const Shape& shape, Dtype dtype) {
  return declare(name, shape, dtype, ValueKind::shared_input);
}
Value GraphBuilder::parameter(const std::string& name, const Shape& shape) {
  return parameter(name, shape, dtype_);
}
Value GraphBuilder::parameter(const std::string& name, const Shape& shape, Dtype dtype) {
  return declare(name, shape, dtype, ValueKind::parameter);
}

void GraphBuilder::output(const std::string& name, Value value) {
  for (const Operand& known : graph_.outputs_) {
    WIDE_REQUIRE(known.name != name, "graph: " + graph_.name_ + ": output " + name +
                                         ", expected another name: there is such an output");
  }
  WIDE_REQUIRE(!value.is_absent(), "graph: output " + name + " is absent, expected one of " +
                                       graph_.name_ + "'s values");
  require_own("output " + name + ": ", value);
  WIDE_REQUIRE(graph_.kind(value) == ValueKind::computed,
               "graph: output " + name + " is " + graph_.name(value) +
                   ", an input or a parameter, expected what a node computes");
  WIDE_REQUIRE(is_batched(graph_, value),
               "graph: output " + name + " is " + graph_.name(value) +
                   ", which depends on parameters only, expected a value with a batch");
  graph_.outputs_.push_back({name, value});
}

std::vector<Value> GraphBuilder::append_node(const std::string& name, const Operation& operation,
                                             std::vector<Operand> operands) {
  WIDE_REQUIRE(!name.empty(), "graph: " + graph_.name_ + ": a node has no name");
  const Rollback rollback(*this);
  Node node{name, operation, {}, {}};
  for (Operand& operand : operands) {
    if (operand.value.is_absent()) continue;
    WIDE_REQUIRE(node.operand(operand.name).is_absent(),
                 "graph: " + name + ": operand " + operand.name + " is given twice, expected once");
    require_own(name + ": " + operand.name + ": ", operand.value);
    const Node* producer = graph_.producer(operand.value);  // also that there is such a value
    const bool is_ensemble =
        producer != nullptr && std::holds_alternative<EnsembleOp>(producer->operation);
    if (is_ensemble) {
      throw_unsupported("graph: " + name + ": " + operand.name + " is the ensemble " +
                        producer->name + ": what members were joined to can only be an output");
    }
    node.operands.push_back(std::move(operand));
  }
  const std::vector<ValueType> types = infer_types(graph_, node);
  const bool is_new = !names_.contains(name);
  WIDE_REQUIRE(
      is_new, "graph: " + graph_.name_ + ": node " + name + ", expected another name: it is taken");
  const auto number = static_cast<int32_t>(graph_.nodes_.size());
  for (const ValueType& type : types) {
    const char* second = std::holds_alternative<RecurrentOp>(operation) ? ".cell" : ".sum";
    const std::string value_name = node.outputs.empty() ? name : name + second;
    node.outputs.push_back(add_value(value_name, type, ValueKind::computed, number));
  }
  graph_.nodes_.push_back(std::move(node));
  names_.emplace(name, "node");
  return graph_.nodes_.back().outputs;
}

Value GraphBuilder::append(const std::string& name, const Operation& operation,
                           std::vector<Operand> operands) {
  return append_node(name, operation, std::move(operands)).front();
}

std::pair<Value, Value> GraphBuilder::append_two(const std::string& name,
                                                 const Operation& operation,
                                                 std::vector<Operand> operands) {
  const Rollback rollback(*this);
  const std::vector<Value> values = append_node(name, operation, std::move(operands));
  WIDE_REQUIRE(
      values.size() == 2,
      "graph: " + name + " writes one value, expected an operation with writes_sum or writes_cell");
  return {values[0], values[1]};
}

GraphBuilder::Rollback::Rollback(GraphBuilder& builder)
    : builder_(builder),
      num_nodes_(builder.graph_.nodes_.size()),
      num_values_(builder.graph_.values_.size()),
      num_inputs_(builder.graph_.inputs_.size()),
      num_parameters_(builder.graph_.parameters_.size()),
      num_outputs_(builder.graph_.outputs_.size()),
      num_exceptions_(std::uncaught_exceptions()) {}

GraphBuilder::Rollback::~Rollback() {
  if (std::uncaught_exceptions() <= num_exceptions_) return;
  Graph& graph = builder_.graph_;
  const auto forget = [](auto& list, size_t from) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(from), list.end());
  };
  for (size_t i = num_nodes_; i < graph.nodes_.size(); ++i)
    builder_.names_.erase(graph.nodes_[i].name);
  for (size_t i = num_values_; i < graph.values_.size(); ++i) {
    if (graph.values_[i].kind != ValueKind::computed) builder_.names_.erase(graph.values_[i].name);
  }
  forget(graph.nodes_, num_nodes_);
  forget(graph.values_, num_values_);
  forget(graph.inputs_, num_inputs_);
  forget(graph.parameters_, num_parameters_);
  forget(graph.outputs_, num_outputs_);
}

Graph GraphBuilder::build() && {
  WIDE_REQUIRE(!graph_.outputs_.empty(),
               "graph: " + graph_.name_ + " has no output, expected at least one");
  return std::move(graph_);
}

}  // namespace wide
