// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators with weights: products, norms, tables.
#include <algorithm>
#include <cmath>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

/// A bias [out] of a constant that is broadcast to it: [out], [1, out], [1] or a scalar.
Value bias_of(Lowering& at, size_t input, int64_t out, Dtype dtype, double factor) {
  const Shape& shape = at.constant_shape(input);
  const int64_t size = num_elements(shape);
  bool is_row = (size == out || size == 1) && shape.rank() <= 2;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) is_row = is_row && shape[axis] == 1;
  at.support(is_row, "adds " + to_string(shape) + ", expected " + counted(out, "number") +
                         " that all rows share, or one");
  for (int64_t i = 0; factor != 1 && i < size; ++i) {
    const double number = at.reader(input)(i);
    at.support(!(std::fabs(factor * number) > most_finite(dtype)),
               "adds " + text(factor * number) + ", which " + std::string(dtype_name(dtype)) +
                   " does not have");
  }
  if (shape == Shape{out}) return at.scaled(input, dtype, factor);
  return at.changed(input, dtype, {out}, [=](const Initializer& t, int64_t i) {
    return factor * element_of(t, size == 1 ? 0 : i);
  });
}

/// Whether a factor can be multiplied into a matrix: no output's weights overflow, or come so close
/// to 0 that bits of all of them are lost.
bool can_scale(Lowering& at, size_t input, Dtype dtype, double factor, bool is_transposed) {
  if (factor == 1) return true;
  const Shape shape = at.constant_shape(input);
  std::vector<double> most(static_cast<size_t>(shape[is_transposed ? 0 : 1]));
  const auto number = at.reader(input);
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    double& own = most[static_cast<size_t>(is_transposed ? i / shape[1] : i % shape[1])];
    own = std::max(own, std::fabs(number(i)));
  }
  return std::ranges::all_of(most, [&](double own) { return holds(dtype, factor * own); });
}

void lower_gemm(Lowering& at) {
  at.only({"alpha", "beta", "broadcast", "transA", "transB"});
  at.support(at.integer("transA", 0) == 0,
             "transposes its first input, in which the batch is in front");
  const Moved rows = at.rows(0);
  const Value x = rows.value;
  const Shape& weight_shape = at.constant_shape(1);
  at.require(at.view(rows).rank() == 2 && weight_shape.rank() == 2,
             "multiplies " + to_string(at.shape(x)) + " and " + to_string(weight_shape) +
                 ", expected two matrices");
  const bool is_transposed = at.integer("transB", 0) != 0;
  const Dtype dtype = at.dtype(x);
  const int64_t out = weight_shape[is_transposed ? 0 : 1];
  const double alpha = static_cast<double>(at.number("alpha", 1));
  const bool is_scaled = !can_scale(at, 1, dtype, alpha, is_transposed);  // behind the product
  at.support(!is_scaled || holds(dtype, alpha), "multiplies by " + text(alpha) + ", which " +
                                                    std::string(dtype_name(dtype)) +
                                                    " does not have in full");
  Value weight = at.scaled(1, dtype, is_scaled ? 1 : alpha);
  if (!is_transposed) weight = at.transposed(weight);
  const float beta = at.number("beta", 1);
  std::vector<Operand> operands{{"x", x}, {"weight", weight}};
  const bool adds = at.has(2) && beta != 0;
  Value added;
  if (adds) added = at.is_computed(2) ? at.x(2) : bias_of(at, 2, out, dtype, beta);
  const bool is_fused = adds && !at.is_computed(2) && !is_scaled;
  if (is_fused) operands.push_back({"bias", added});
  Value y = at.append(LinearOp{}, operands);
  if (is_scaled) y = at.multiplied(y, alpha);
  if (adds && at.is_computed(2)) {
    at.support(beta == 1, "scales what it adds, which is computed");
    at.support(!rows.view, "adds to rows whose axes were moved");
  }
  if (adds && !is_fused) y = at.append(BinaryOp{}, {{"x", y}, {"other", added}});
  at.set_like(rows, y);
}

/// The bias that the only reader of a product adds, if it is an addition.
const OnnxNode* find_bias(Lowering& at, int64_t out, size_t& place) {
  const OnnxNode* reader = at.only_reader();
  const bool adds = reader != nullptr && reader->op == "Add" && reader->inputs.size() == 2 &&
                    reader->attributes.empty();  // before opset 7 they say along which axis
  if (!adds) return nullptr;
  place = reader->inputs[0] == at.node().outputs[0] ? 1 : 0;
  const std::string_view other = reader->inputs[place];
  if (!at.is_constant(other)) return nullptr;
  const Term& term = at.term(other);
  const bool is_row = term.tensor != nullptr && term.tensor->shape == Shape{out} && !term.rows;
  return is_row ? reader : nullptr;
}

void lower_matmul(Lowering& at) {
  at.only({});
  if (at.is_computed(1)) return lower_products(at);
  const Moved rows = at.rows(0);
  const Value x = rows.value;
  const Shape& weight_shape = at.constant_shape(1);
  at.support(weight_shape.rank() == 2,
             "multiplies by " + to_string(weight_shape) + ", expected a matrix");
  at.support(at.shape(x).rank() >= 2, "multiplies a vector, expected rows");
  const Dtype dtype = at.dtype(x);
  std::vector<Operand> operands{{"x", x}, {"weight", at.transposed(at.parameter(1, dtype))}};
  size_t place = 0;
  if (const OnnxNode* reader = find_bias(at, weight_shape[1], place)) {
    at.visit(*reader, [&] { operands.push_back({"bias", at.parameter(place, dtype)}); });
    const Value y = at.append(LinearOp{}, operands);
    at.visit(*reader, [&] { at.set_like(rows, y); });
    at.absorb(*reader);
    return;
  }
  at.set_like(rows, at.append(LinearOp{}, operands));
}

void lower_batchnorm(Lowering& at) {
  at.only({"consumed_inputs", "epsilon", "is_test", "momentum", "training_mode", "spatial"});
  at.support(at.opset() >= 7 || at.integer("is_test", 0) != 0,
             "is in training mode, expected inference");
  at.support(at.integer("training_mode", 0) == 0 && at.integer("spatial", 1) == 1,
             "is in training mode, expected inference");
  for (size_t i = 1; i < at.node().outputs.size(); ++i)
    at.support(!at.is_used(i), "computes statistics, expected inference");
  at.require(at.num_inputs() == 5, "has " + counted(at.num_inputs(), "input") + ", expected 5");
  const Value x = at.x(0);
  at.set(at.append(BatchnormOp{at.number("epsilon", 1e-5f)},
                   {{"x", x},
                    {"gamma", at.parameter(1, at.dtype(x))},
                    {"beta", at.parameter(2, at.dtype(x))},
                    {"running_mean", at.parameter(3, Dtype::fp32)},
                    {"running_variance", at.parameter(4, Dtype::fp32)}}));
}

void lower_instancenorm(Lowering& at) {
  at.only({"epsilon"});
  const Value x = at.x(0);
  at.set(at.append(
      InstancenormOp{at.number("epsilon", 1e-5f)},
      {{"x", x}, {"gamma", at.parameter(1, at.dtype(x))}, {"beta", at.parameter(2, at.dtype(x))}}));
}

void lower_groupnorm(Lowering& at) {
  at.only({"epsilon", "num_groups", "stash_type"});
  const Value x = at.x(0);
  const Shape& gamma = at.constant_shape(1);
  at.support(
      at.shape(x).rank() >= 2 && gamma == Shape{at.shape(x)[1]},
      "has a scale " + to_string(gamma) + ", expected one for each channel, as from opset 21 on");
  at.set(at.append(
      GroupnormOp{at.integer("num_groups", 1), at.number("epsilon", 1e-5f)},
      {{"x", x}, {"gamma", at.parameter(1, at.dtype(x))}, {"beta", at.parameter(2, at.dtype(x))}}));
}

/// Without axes of 1 in front.
std::vector<int64_t> core_of(std::span<const int64_t> extents) {
  const auto first = std::find_if(extents.begin(), extents.end(), [](int64_t e) { return e != 1; });
  return {first, extents.end()};
}

/// gamma or beta, one number per element normalised together: of the axes `normalised`.
Value norm_parameter(Lowering& at, size_t input, const Shape& normalised, Dtype dtype) {
  if (!at.has(input)) return {};
  const Shape& own = at.constant_shape(input);
  at.support(core_of({own.begin(), own.end()}) == core_of({normalised.begin(), normalised.end()}),
             "has a scale or bias " + to_string(own) + ", expected " + to_string(normalised));
  return at.reshaped(at.parameter(input, dtype), {num_elements(normalised)});
}

void lower_layernorm(Lowering& at) {
  at.only({"axis", "epsilon", "stash_type"});
  at.support_joined_rank();
  at.support(at.integer("stash_type", 1) == 1, "computes in another type than FLOAT");
  at.support(!at.is_used(1) && !at.is_used(2), "writes its statistics, which no primitive does");
  const Moved own = at.moved(0);
  const int rank = at.view(own).rank();
  const bool is_row = checked_axis(at.integer("axis", -1), rank) == rank - 1;
  at.support(is_row || !at.node().joined_rank, "normalises over axis " +
                                                   std::to_string(at.integer("axis", -1)) +
                                                   " alone, expected the last one");
  const Moved like = is_row ? at.rows(0) : Moved{at.x(0)};
  const Value x = like.value;
  const Shape shape = at.shape(x);
  const int axis = is_row ? shape.rank() - 1 : checked_axis(at.integer("axis", -1), shape.rank());
  at.support(axis > 0, "normalises over the batch");
  std::vector<int64_t> rows(shape.begin(), shape.begin() + axis);
  const Shape normalised(std::span(shape.begin() + axis, shape.end()));
  rows.push_back(num_elements(normalised));
  const Value y = at.append(LayernormOp{at.number("epsilon", 1e-5f), false},
                            {{"x", at.reshaped(x, Shape(rows))},
                             {"gamma", norm_parameter(at, 1, normalised, at.dtype(x))},
                             {"beta", norm_parameter(at, 2, normalised, at.dtype(x))}});
  at.set_like(like, at.reshaped(y, shape));
}

/// One element of an activation's axis, or contiguous ones.
void gather_parts(Lowering& at) {
  const Moved x = at.moved(0);
  const Numbers extents = at.view(x).extents();
  const int axis = checked_axis(at.integer("axis", 0), at.view(x).rank());
  const Numbers& which = at.numbers(1);
  at.support(!is_batch(extents, static_cast<size_t>(axis)), "gathers rows of the batch");
  const int64_t extent = to_integer(extents, static_cast<size_t>(axis));
  at.support(which.shape.rank() <= 1 && !which.values.empty(),
             "gathers by " + to_string(which.shape) + " indices, expected one or a list");
  int64_t first = to_integer(which, 0);
  if (first < 0) first += extent;
  at.require(first >= 0 && first < extent, "gathers element " + std::to_string(first) +
                                               ", expected one of " + std::to_string(extent));
  for (size_t i = 0; i < which.values.size(); ++i) {
    const int64_t index = to_integer(which, i);
    at.support((index < 0 ? index + extent : index) == first + static_cast<int64_t>(i),
               "gathers elements that do not lie together");
  }
  Moved y = at.part(x, axis, first, std::ssize(which.values));
  if (which.shape.rank() == 0) y.view = at.view(y).without(axis);
  at.set(0, y);
}

/// A table read by computed ids, or one element, or contiguous ones, of an activation's
/// axis.
void lower_gather(Lowering& at) {
  at.only({"axis"});
  if (at.is_computed(0)) {
    return gather_parts(at);
  }
  const Value ids = at.x(1);
  const Shape& table = at.constant_shape(0);
  at.support(table.rank() == 2 && at.integer("axis", 0) == 0,
             "gathers from " + to_string(table) + " along axis " +
                 std::to_string(at.integer("axis", 0)) + ", expected rows of a table");
  const Shape shape = at.shape(ids);
  int64_t per_sample = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) per_sample *= shape[axis];
  const Value y = at.append(EmbeddingOp{}, {{"ids", at.reshaped(ids, {kBatch, per_sample})},
                                            {"table", at.parameter(0, at.constant_dtype(0))}});
  std::vector<int64_t> out(shape.begin(), shape.end());
  out.push_back(table[1]);
  at.support(out.size() < kMaxRank, "computes more than 5 axes");
  at.set(at.reshaped(y, Shape(out)));
}

}  // namespace

void add_dense_operators(std::map<std::string_view, Lower>& table) {
  table["Gemm"] = lower_gemm;
  table["MatMul"] = lower_matmul;
  table["BatchNormalization"] = lower_batchnorm;
  table["InstanceNormalization"] = lower_instancenorm;
  table["GroupNormalization"] = lower_groupnorm;
  table["LayerNormalization"] = lower_layernorm;
  table["Gather"] = lower_gather;
}

}  // namespace wide::onnx
