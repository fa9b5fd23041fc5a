// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// graph: the network of one member, as data. It is built, by hand or by an importer, then compiled
// for N members: model.hpp.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wide/operation.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// Stands for the batch, the first extent of every value that is not a parameter. Its size is not
/// known until a graph is compiled.
inline constexpr int64_t kBatch = -1;

/// A value of one graph: an input, a parameter, or what a node computes.
struct Value {
  int32_t index = -1;
  uint32_t builder = 0;  ///< the one that made it; others refuse it. 0: by number, for any
  bool is_absent() const { return index < 0; }
  friend constexpr bool operator==(Value a, Value b) { return a.index == b.index; }
  friend constexpr auto operator<=>(Value a, Value b) { return a.index <=> b.index; }
};

/// The type of a value, for one member.
struct ValueType {
  Dtype dtype = Dtype::fp32;
  Shape shape;  ///< begins with kBatch, unless it is a parameter's
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

/// "fp32 [B, 64]"
std::string to_string(const ValueType& type);

enum class ValueKind : uint8_t {
  input,         ///< each member has its own
  shared_input,  ///< all members read one
  parameter,     ///< each member has its own, set when a model is made or a member replaced
  computed,
};

/// An operand by its name in the primitive: "x", "weight", "bias".
struct Operand {
  std::string name;
  Value value;
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Node {
  std::string name;  ///< "encoder.layer0.fc1": the part before the last dot is its module
  Operation operation;
  std::vector<Operand> operands;  ///< without absent ones
  std::vector<Value> outputs;     ///< one, or two where the operation has a second

  /// Absent where there is no such operand.
  Value operand(std::string_view operand_name) const;
};

/// Immutable; copies are deep.
class Graph {
 public:
  const std::string& name() const { return name_; }
  /// Each node after those that it reads from.
  std::span<const Node> nodes() const { return nodes_; }
  int64_t num_values() const { return static_cast<int64_t>(values_.size()); }

  const ValueType& type(Value value) const { return at(value).type; }
  ValueKind kind(Value value) const { return at(value).kind; }
  /// A parameter's name is that in a checkpoint; a computed value's that of its node.
  const std::string& name(Value value) const { return at(value).name; }
  /// nullptr for inputs and parameters.
  const Node* producer(Value value) const;

  std::span<const Value> inputs() const { return inputs_; }
  std::span<const Value> parameters() const { return parameters_; }
  std::span<const Operand> outputs() const { return outputs_; }  ///< under the outputs' names
  /// Absent where there is none of that name.
  Value find_parameter(std::string_view parameter_name) const;

  /// Elements of all parameters of one member.
  int64_t num_parameters() const;

 private:
  friend class GraphBuilder;
  struct Info {
    ValueType type;
    ValueKind kind = ValueKind::computed;
    std::string name;
    int32_t producer = -1;  ///< the node's number
  };
  const Info& at(Value value) const;

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Info> values_;
  std::vector<Value> inputs_, parameters_;
  std::vector<Operand> outputs_;
};

/// "linear", "conv2d", "reshape": the primitive's name where there is one.
std::string_view operation_name(const Graph& graph, const Node& node);

/// Attributes that differ from their defaults, as text: {"activation", "relu"}.
std::vector<std::pair<std::string, std::string>> operation_attributes(const Operation& operation);

/// Formats of to_string().
enum class GraphStyle : uint8_t {
  list,   ///< a line for each input, node and output, marked by what it is
  tree,   ///< modules by the dots of their names
  table,  ///< nodes with types, parameters and their bytes
  dot,    ///< for Graphviz
  json,   ///< everything but the parameters' contents
};
std::string to_string(const Graph& graph, GraphStyle style);

/// Builds a graph node by node. Every call checks what it is given, and throws invalid_argument
/// that names the node, what was got and what expected, or unsupported where no member-wise
/// computation can be made from it. Values of another builder are refused, except those made by
/// number.
class GraphBuilder {
 public:
  /// `dtype` is that of inputs and parameters that are declared without one, and of embeddings'
  /// tables; other layers' parameters have x's.
  explicit GraphBuilder(std::string name, Dtype dtype = Dtype::fp32);

  /// Each member has its own: packed along the axis that its first reader expects.
  Value input(const std::string& name, const Shape& shape);
  Value input(const std::string& name, const Shape& shape, Dtype dtype);
  /// All members read one.
  Value shared_input(const std::string& name, const Shape& shape);
  Value shared_input(const std::string& name, const Shape& shape, Dtype dtype);
  Value parameter(const std::string& name, const Shape& shape);
  Value parameter(const std::string& name, const Shape& shape, Dtype dtype);
  void output(const std::string& name, Value value);

  /// Any operation. Operands that are absent are left out.
  Value append(const std::string& name, const Operation& operation, std::vector<Operand> operands);
  /// The same, for an operation with writes_sum or writes_cell: its y, then the sum or cell state.
  std::pair<Value, Value> append_two(const std::string& name, const Operation& operation,
                                     std::vector<Operand> operands);

  const ValueType& type(Value value) const;
  const Graph& graph() const { return graph_; }  ///< as built so far
  Dtype dtype() const { return dtype_; }

  /// Throws invalid_argument where there is no output.
  Graph build() &&;

  /// If an exception leaves its scope, what was built inside is undone, so that it may be tried
  /// again. Every call and every layer does this: it is added in full, or not at all.
  class Rollback {
   public:
    explicit Rollback(GraphBuilder& builder);
    ~Rollback();
    Rollback(const Rollback&) = delete;

   private:
    GraphBuilder& builder_;
    size_t num_nodes_, num_values_, num_inputs_, num_parameters_, num_outputs_;
    int num_exceptions_;
  };

 private:
  void require_own(const std::string& what, Value value) const;
  Value add_value(const std::string& name, ValueType type, ValueKind kind, int32_t producer);
  Value declare(const std::string& name, const Shape& shape, Dtype dtype, ValueKind kind);
  std::vector<Value> append_node(const std::string& name, const Operation& operation,
                                 std::vector<Operand> operands);
  Graph graph_;
  Dtype dtype_;
  uint32_t number_;                                        ///< of this builder, as values have it
  std::map<std::string, std::string, std::less<>> names_;  ///< of values and nodes, and their kind
};

/// Which linear layers' weights are to be quantised, and how.
struct WeightQuantization {
  WeightFormat format = WeightFormat::int4;
  int64_t group_size = 128;           ///< inputs that share a scale: 64 or 128
  std::vector<std::string> layers{};  ///< nodes' names; empty: all that are not quantised yet
};

/// The same network with quantised weights in its linear layers (quantize.hpp). Its parameters are
/// unchanged: members are loaded and replaced as before, and the host's threads quantise their
/// weights from the graph's dtype, so that replacing a member takes host time on CUDA as well. The
/// host keeps what was loaded, and Model::get returns it. Linear layers only, not attention's
/// projections; x is fp16 or bf16 on CUDA, and may be fp32 on the CPU. Call it again for layers of
/// another format. No batchnorm is folded into such a layer, no mlp includes it, and in a ragged
/// model it runs member after member.
/// Errors: invalid_argument (packed as a format, another group size, no such layer, none at all).
Graph with_quantized_weights(const Graph& graph, const WeightQuantization& how);

/// Which ensembles are wanted, and of which outputs.
struct OutputEnsembles {
  std::vector<EnsembleFunction> ensembles{EnsembleFunction::mean};
  std::vector<std::string> outputs{};  ///< by name; empty: all that are not ensembles
  bool keeps_members = false;          ///< each member's result stays an output, before these
};

/// The same network, of a file as well, with ensembles in place of outputs: the mean of "y" is
/// "y.mean", and so on, in the order of `ensembles`. Its parameters are unchanged.
///
///   with_ensembles(onnx.graph(), {.ensembles = {EnsembleFunction::mean,
///   EnsembleFunction::variance}})
///
/// Errors: invalid_argument (no ensemble, no such output, none at all, one twice, x as
/// GraphBuilder says).
Graph with_ensembles(const Graph& graph, const OutputEnsembles& what);

/// Types of a node's outputs. Throws as GraphBuilder says.
std::vector<ValueType> infer_types(const Graph& graph, const Node& node);

/// Parameters of one member by their names in the graph.
using MemberParameters = std::map<std::string, ConstTensorView, std::less<>>;

}  // namespace wide
