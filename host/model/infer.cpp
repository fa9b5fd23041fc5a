// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Types of what nodes compute, from those of their operands. One function per operation; they share
// Operands, whose messages name the node.
#include <cmath>
#include <string>

#include "host/attention/flash_attention_problem.hpp"
#include "host/core/text.hpp"
#include "host/embedding/embedding_problem.hpp"
#include "host/model/broadcast.hpp"
#include "host/model/infer_operands.hpp"
#include "host/pointwise/pointwise_problem.hpp"
#include "wide/graph.hpp"
#include "wide/mlp.hpp"

namespace wide {

namespace {

using infer_detail::Operands, infer_detail::Types, infer_detail::with_last;

/// Bytes of a member's quantised weight.
int64_t bytes_of(const Operands& at, WeightFormat format, int64_t group_size, int64_t out,
                 int64_t in) {
  at.require(format != WeightFormat::packed, "format is packed, expected a quantised one");
  at.require(group_size == 64 || group_size == 128,
             "group_size is " + text(group_size) + ", expected 64 or 128");
  at.require(out >= 0, "out_features is " + text(out) + ", expected >= 0");
  return quantized_bytes({format, group_size, out, in});
}

Types infer(const LinearOp& op, const Operands& at) {
  at.only({"x", "weight", "bias", "residual"});
  const ValueType& x = at.floating("x", 2, 4);
  int64_t out = op.out_features;
  if (op.weight_format == WeightFormat::packed) {
    out = at.parameter("weight", {kBatch, x.shape.back()}, x.dtype).shape[0];
  } else {
    at.parameter("weight", {bytes_of(at, op.weight_format, op.group_size, out, x.shape.back())},
                 Dtype::uint8);
  }
  const ValueType y = with_last(x, out);
  at.optional_parameter("bias", {out}, x.dtype);
  at.residual(op.residual, y);
  return {y};
}

Types infer(const EmbeddingOp& op, const Operands& at) {
  at.only({"ids", "table"});
  const ValueType& ids = at.activation("ids", 2, 2);
  at.require(ids.dtype == Dtype::int32 || ids.dtype == Dtype::int64,
             "ids is " + text(dtype_name(ids.dtype)) + ", expected int32 or int64");
  const Dtype dtype = at.type("table").dtype;
  const ValueType& table = at.parameter("table", {kBatch, kBatch}, dtype);
  at.require_accepted([&] { require_padding_id(op.padding_id, table.shape[0]); });
  return {{dtype, {kBatch, ids.shape[1], table.shape[1]}}};
}

/// Shared by layernorm, rmsnorm and chain.
Types infer_rows(const Operands& at, bool has_norm, bool has_beta, bool writes_sum) {
  const ValueType& x = at.floating("x", 2, 5);
  if (has_norm) at.optional_parameter("gamma", {x.shape.back()}, x.dtype);
  if (has_norm && has_beta) at.optional_parameter("beta", {x.shape.back()}, x.dtype);
  if (at.has("residual")) at.same("residual", x);
  at.require(!writes_sum || has_norm, "writes_sum is set, expected a norm: y is the sum");
  return writes_sum ? Types{x, x} : Types{x};
}
void require_epsilon(const Operands& at, float epsilon) {
  at.require(std::isfinite(epsilon) && epsilon >= 0,
             "epsilon is " + text(epsilon) + ", expected a finite number >= 0");
}
Types infer(const LayernormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "gamma", "beta", "residual"});
  return infer_rows(at, true, true, op.writes_sum);
}
Types infer(const RmsnormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "gamma", "residual"});
  return infer_rows(at, true, false, op.writes_sum);
}
Types infer(const ChainOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "bias", "gamma", "beta", "residual"});
  at.require(op.norm == ChainNorm::layernorm || !at.has("beta"), "beta is present, expected none");
  at.require(op.norm != ChainNorm::none || !at.has("gamma"), "gamma is present, expected none");
  const ValueType& x = at.floating("x", 2, 5);
  at.optional_parameter("bias", {x.shape.back()}, x.dtype);
  return infer_rows(at, op.norm != ChainNorm::none, op.norm == ChainNorm::layernorm, op.writes_sum);
}

const ValueType& channels(const Operands& at, int min_rank) {
  const ValueType& x = at.floating("x", min_rank, 5);
  at.optional_parameter("gamma", {x.shape[1]}, x.dtype);
  at.optional_parameter("beta", {x.shape[1]}, x.dtype);
  return x;
}
Types infer(const BatchnormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "gamma", "beta", "running_mean", "running_variance"});
  const ValueType& x = channels(at, 2);
  at.parameter("running_mean", {x.shape[1]}, Dtype::fp32);
  at.parameter("running_variance", {x.shape[1]}, Dtype::fp32);
  return {x};
}
Types infer(const GroupnormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "gamma", "beta"});
  const ValueType& x = channels(at, 2);
  at.require(op.groups >= 1 && x.shape[1] % op.groups == 0,
             "groups is " + text(op.groups) + ", expected a divisor of " + text(x.shape[1]));
  return {x};
}
Types infer(const InstancenormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"x", "gamma", "beta"});
  return {channels(at, 3)};
}

Types infer(const PointwiseOp& op, const Operands& at) {
  at.only({"x", "slope"});
  const ValueType& x = at.floating("x", 1, 6);
  at.require(at.has("slope") == (op.function == PointwiseFunction::prelu),
             at.has("slope") ? "slope is present, expected none: only prelu has one"
                             : "slope is absent, expected [1] or one for each feature");
  if (at.has("slope")) {
    const bool is_one = at.type("slope").shape == Shape{1};
    at.parameter("slope", {is_one ? 1 : x.shape.back()}, x.dtype);
  }
  at.require_accepted([&] {
    PointwiseProblem problem;
    problem.slope = op.slope, problem.alpha = op.alpha, problem.beta = op.beta;
    problem.low = op.low, problem.high = op.high;
    require_pointwise_parameters(problem);
  });
  return {x};
}

/// [1], the last axes of x, or [C, 1, ..].
bool broadcasts(const Shape& other, const Shape& x) {
  return num_elements(other) == 1 || is_of_last_axes(other, x) || is_one_per_channel(other, x);
}

Types infer(const BinaryOp& op, const Operands& at) {
  at.only({"x", "other"});
  if (at.is_parameter("x")) {  // of parameters only: computed before anything runs
    at.require(op.activation == Activation::none,
               "has an activation, expected none: x is a parameter");
    at.same("other", at.type("x"));
    return {at.type("x")};
  }
  const ValueType& x = at.floating("x", 2, 6);
  const ValueType& other = at.type("other");
  if (!at.is_parameter("other")) {
    const bool repeats =
        repeats_channels(other.shape, x.shape) || repeats_features(other.shape, x.shape);
    if (!repeats || other.dtype != x.dtype) at.same("other", x);
  } else {
    at.require(other.dtype == x.dtype && broadcasts(other.shape, x.shape),
               "other is " + to_string(other) +
                   ", expected the dtype of x and one element, x's "
                   "last axes or its channels: x is " +
                   to_string(x));
  }
  return {x};
}

Types infer(const SoftmaxOp&, const Operands& at) {
  at.only({"x"});
  return {at.floating("x", 2, 5)};
}
Types infer(const DropoutOp& op, const Operands& at) {
  at.only({"x", "probability"});
  if (at.has("probability")) at.parameter("probability", {1}, Dtype::fp32);
  at.require(op.probability >= 0 && op.probability <= 1,
             "probability is " + text(op.probability) + ", expected one in [0, 1]");
  return {at.floating("x", 2, 5)};
}

int checked_axis(const Operands& at, int axis, const Shape& x) {
  const bool is_batch = axis == 0 && is_batched(x);
  at.require(axis >= 0 && axis < x.rank() && !is_batch, "axis is " + text(axis) +
                                                            ", expected one of " + shape_text(x) +
                                                            (is_batch ? " after the batch" : ""));
  return axis;
}

Types infer(const ConcatOp& op, const Operands& at) {
  const std::vector<Operand>& parts = at.node().operands;
  at.require(!parts.empty(), "there is no part, expected at least one");
  const Operand* first = nullptr;
  for (const Operand& part : parts) {
    if (!at.is_parameter(part.name)) first = first == nullptr ? &part : first;
  }
  at.require(first != nullptr, "all parts are parameters, expected one that is computed");
  ValueType y = at.graph().type(first->value);
  const int axis = checked_axis(at, op.axis, y.shape);
  const ValueType like = y;
  y.shape[axis] = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    at.require(parts[i].name == "part" + text(i),
               "operand " + parts[i].name + ", expected part" + text(i));
    ValueType part = at.graph().type(parts[i].value);
    if (at.is_parameter(parts[i].name)) {
      at.require(part.shape.rank() == like.shape.rank() - 1,
                 parts[i].name + " is a parameter " + to_string(part) + ", expected the axes of " +
                     to_string(like) + " without the batch");
      Shape shape = like.shape;
      for (int a = 1; a < shape.rank(); ++a) shape[a] = part.shape[a - 1];
      part.shape = shape;
    }
    at.require(
        part.shape.rank() == like.shape.rank(),
        parts[i].name + " is " + to_string(part) + ", expected the axes of " + to_string(like));
    at.require(!__builtin_add_overflow(y.shape[axis], part.shape[axis], &y.shape[axis]),
               "the parts of axis " + text(axis) + " are more than 64 bits count");
    part.shape[axis] = like.shape[axis];
    at.require(part == like, parts[i].name + " is " + to_string(at.graph().type(parts[i].value)) +
                                 ", expected " + to_string(like) + " but for axis " + text(axis));
  }
  return {y};
}

Types infer(const SliceOp& op, const Operands& at) {
  at.only({"x"});
  ValueType y = at.type("x");
  const int axis = checked_axis(at, op.axis, y.shape);
  int64_t end = 0;
  const bool has_end = !__builtin_add_overflow(op.first, op.count, &end);
  at.require(has_end && op.first >= 0 && op.count >= 1 && end <= y.shape[axis],
             "elements " + range_text(op.first, op.count) + " of axis " + text(axis) +
                 ", expected some of " + shape_text(y.shape));
  y.shape[axis] = op.count;
  return {y};
}

Types infer(const ReshapeOp& op, const Operands& at) {
  at.only({"x"});
  const ValueType& x = at.type("x");
  const bool has_batch = !at.is_parameter("x");
  const bool keeps_batch = is_batched(op.shape);
  if (has_batch && !keeps_batch) {
    throw_unsupported("graph: " + at.node().name + ": reshapes " + shape_text(x.shape) + " to " +
                      shape_text(op.shape) + ": the batch must stay in front");
  }
  at.require(has_batch == keeps_batch, "shape is " + shape_text(op.shape) + ", expected no batch");
  constexpr int64_t kUncountable = -1;
  const int first = has_batch ? 1 : 0;
  const auto elements = [&](const Shape& shape) {
    int64_t n = 1;
    for (int axis = first; axis < shape.rank(); ++axis) {
      if (__builtin_mul_overflow(n, shape[axis], &n)) return kUncountable;
    }
    return n;
  };
  for (int axis = first; axis < op.shape.rank(); ++axis) {  // -1, which would infer one, is refused
    at.require(op.shape[axis] >= 0,
               "shape is " + (has_batch ? shape_text(op.shape) : to_string(op.shape)) +
                   ", expected extents of at least 0" + (has_batch ? " after the batch" : ""));
  }
  at.require(
      elements(x.shape) == elements(op.shape),
      "shape is " + shape_text(op.shape) + ", expected the elements of " + shape_text(x.shape));
  return {{x.dtype, op.shape}};
}

Types infer(const TransposeOp& op, const Operands& at) {
  at.only({"x"});
  const ValueType& x = at.type("x");
  std::vector<bool> seen(static_cast<size_t>(x.shape.rank()));
  bool is_order = op.order.rank() == x.shape.rank();
  ValueType y = x;
  for (int axis = 0; is_order && axis < op.order.rank(); ++axis) {
    const int64_t from = op.order[axis];
    is_order = from >= 0 && from < x.shape.rank() && !seen[static_cast<size_t>(from)];
    if (!is_order) break;
    seen[static_cast<size_t>(from)] = true;
    y.shape[axis] = x.shape[static_cast<int>(from)];
  }
  at.require(is_order, "order is " + to_string(op.order) + ", expected the axes of " +
                           shape_text(x.shape) + ", each once");
  at.require(at.is_parameter("x") || op.order[0] == 0,
             "order is " + to_string(op.order) + ", expected the batch of " + shape_text(x.shape) +
                 " to stay in front");
  return {y};
}

Types infer(const FoldBatchnormOp& op, const Operands& at) {
  require_epsilon(at, op.epsilon);
  at.only({"weight", "bias", "gamma", "beta", "running_mean", "running_variance"});
  at.require_floating("dtype", op.dtype);
  const Shape channels = at.parameter("running_variance", {kBatch}, Dtype::fp32).shape;
  for (const char* name : {"gamma", "beta", "bias"}) {
    if (at.has(name)) at.floating_parameter(name, channels);
  }
  at.optional_parameter("running_mean", channels, Dtype::fp32);
  if (at.has("weight")) {
    const ValueType& weight = at.type("weight");
    const int64_t groups = op.transposed_groups;
    const int least = groups > 0 ? 2 : 1;
    at.require(
        weight.shape.rank() >= least &&
            (groups > 0 ? weight.shape[1] * groups : weight.shape[0]) == channels[0],
        "weight is " + shape_text(weight.shape) +
            ", expected as many outputs as running_variance has channels = " + text(channels[0]));
    return {{op.dtype, at.floating_parameter("weight", weight.shape).shape}};
  }
  at.require(at.has("running_mean"), "running_mean is absent, expected one where no weight is");
  return {{op.dtype, channels}};
}

MlpProblem mlp_of(const std::vector<int64_t>& widths, bool has_bias, Dtype dtype) {
  MlpProblem problem;
  problem.widths = widths;
  problem.has_bias = has_bias;
  problem.dtype = dtype;
  return problem;
}

Types infer(const MlpOp& op, const Operands& at) {
  at.only({"x", "weights"});
  const ValueType& x = at.floating("x", 2, 4);
  at.require(op.widths.size() >= 2 && op.widths.front() == x.shape.back(),
             "widths are " + counted(op.widths.size(), "number") +
                 ", expected at least two, of which the "
                 "first is x's last extent");
  const int64_t elements = mlp_member_elements(mlp_of(op.widths, op.has_bias, x.dtype));
  at.parameter("weights", {elements}, x.dtype);
  return {with_last(x, op.widths.back())};
}

Types infer(const PackMlpOp& op, const Operands& at) {
  const Dtype dtype = at.type("weight0").dtype;
  for (size_t i = 0; i + 1 < op.widths.size(); ++i) {
    const std::string number = std::to_string(i);
    at.parameter("weight" + number, {op.widths[i + 1], op.widths[i]}, dtype);
    if (op.has_bias) at.parameter("bias" + number, {op.widths[i + 1]}, dtype);
  }
  return {{dtype, {mlp_member_elements(mlp_of(op.widths, op.has_bias, dtype))}}};
}

Types infer(const QuantizeOp& op, const Operands& at) {
  at.only({"weight"});
  const ValueType& weight = at.parameter("weight", {kBatch, kBatch}, at.type("weight").dtype);
  const bool is_known =
      weight.dtype == Dtype::fp32 || weight.dtype == Dtype::fp16 || weight.dtype == Dtype::bf16;
  at.require(is_known,
             "weight is " + text(dtype_name(weight.dtype)) + ", expected fp32, fp16 or bf16");
  return {
      {Dtype::uint8, {bytes_of(at, op.format, op.group_size, weight.shape[0], weight.shape[1])}}};
}

Types infer(const EnsembleOp&, const Operands& at) {
  at.only({"x"});
  return {at.floating("x", 2, 5)};
}

}  // namespace

std::string to_string(const ValueType& type) {
  return text(dtype_name(type.dtype)) + " " + shape_text(type.shape);
}

std::vector<ValueType> infer_types(const Graph& graph, const Node& node) {
  const Operands at(graph, node);
  for (const Operand& operand : node.operands) {
    at.require(operand.value.index >= 0 && operand.value.index < graph.num_values(),
               operand.name + " is no value of this graph");
  }
  return std::visit([&](const auto& operation) { return infer(operation, at); }, node.operation);
}

}  // namespace wide
