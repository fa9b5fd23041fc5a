// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Each layer declares its parameters and appends its node; errors name the node.
#include "wide/layers.hpp"

#include "host/core/check.hpp"

namespace wide::layers {

namespace {

/// For operands that a node must have: append() leaves absent ones out.
void require_present(const std::string& name, const std::string& operand, Value value) {
  WIDE_REQUIRE(!value.is_absent(), "graph: " + name + ": " + operand + " is absent, expected one");
}

const ValueType& type_of(const GraphBuilder& g, const std::string& name, Value x) {
  require_present(name, "x", x);
  return g.type(x);
}

/// The extent of one of x's axes; negative from the back.
int64_t extent(const GraphBuilder& g, const std::string& name, Value x, int axis) {
  const ValueType& type = type_of(g, name, x);
  const Shape& shape = type.shape;
  WIDE_REQUIRE(shape.rank() >= 2, "graph: " + name + ": x is " + to_string(type) +
                                      ", expected a batch and at least one axis after it");
  return shape[axis < 0 ? shape.rank() + axis : axis];
}

/// "NAME.weight" of `weight` elements and "NAME.bias", of x's dtype.
std::vector<Operand> affine(GraphBuilder& g, const std::string& name, Value x, int64_t size,
                            bool has_beta = true) {
  const Dtype dtype = type_of(g, name, x).dtype;
  std::vector<Operand> operands{{"x", x}, {"gamma", g.parameter(name + ".weight", {size}, dtype)}};
  if (has_beta) operands.push_back({"beta", g.parameter(name + ".bias", {size}, dtype)});
  return operands;
}

std::string recurrent_name(const std::string& name, const RecurrentLayer& layer) {
  return layer.suffix == RecurrentLayer{}.suffix ? name : name + "." + layer.suffix;
}

/// The node of one layer in one direction: y, and the last cell state where `writes_cell`.
std::pair<Value, Value> recurrent_node(GraphBuilder& g, const std::string& name, Value x,
                                       int64_t hidden, const RecurrentOp& op,
                                       const RecurrentLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const Dtype dtype = type_of(g, name, x).dtype;
  const int64_t gates = recurrent_gates(op.cell) * hidden;
  const auto parameter = [&](const char* kind, const Shape& shape) {
    return g.parameter(name + "." + kind + "_" + layer.suffix, shape, dtype);
  };
  std::vector<Operand> operands{
      {"x", x},
      {"input_weight", parameter("weight_ih", {gates, extent(g, name, x, -1)})},
      {"hidden_weight", parameter("weight_hh", {gates, hidden})},
      {"first_hidden", layer.first_hidden},
      {"first_cell", layer.first_cell}};
  if (layer.has_bias) {
    operands.push_back({"input_bias", parameter("bias_ih", {gates})});
    operands.push_back({"hidden_bias", parameter("bias_hh", {gates})});
  }
  const std::string node = recurrent_name(name, layer);
  if (op.writes_cell) return g.append_two(node, op, std::move(operands));
  return {g.append(node, op, std::move(operands)), Value{}};
}

Value recurrent_rows(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
                     RecurrentCell cell, const RecurrentLayer& layer) {
  const RecurrentOp op{.cell = cell, .is_reversed = layer.is_reversed};
  return recurrent_node(g, name, x, hidden, op, layer).first;
}

/// Weights of queries, keys and values of a cross attention: thirds of one parameter where all are
/// alike, as PyTorch's MultiheadAttention keeps them.
void append_cross_weights(GraphBuilder& g, const std::string& name, std::vector<Operand>& operands,
                          int64_t d, int64_t key_features, int64_t value_features, Dtype dtype) {
  const auto add = [&](const char* role, Value weight) { operands.push_back({role, weight}); };
  if (key_features != d || value_features != d) {
    add("q_weight", g.parameter(name + ".q_proj_weight", {d, d}, dtype));
    add("k_weight", g.parameter(name + ".k_proj_weight", {d, key_features}, dtype));
    add("v_weight", g.parameter(name + ".v_proj_weight", {d, value_features}, dtype));
    return;
  }
  const Value all = g.parameter(name + ".in_proj_weight", {3 * d, d}, dtype);
  add("q_weight", slice(g, name + ".q_proj", all, 0, 0, d));
  add("k_weight", slice(g, name + ".k_proj", all, 0, d, d));
  add("v_weight", slice(g, name + ".v_proj", all, 0, 2 * d, d));
}

}  // namespace

Value linear(GraphBuilder& g, const std::string& name, Value x, int64_t out_features,
             const LinearLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const Dtype dtype = type_of(g, name, x).dtype;
  std::vector<Operand> operands{
      {"x", x},
      {"weight", g.parameter(name + ".weight", {out_features, extent(g, name, x, -1)}, dtype)}};
  if (layer.has_bias)
    operands.push_back({"bias", g.parameter(name + ".bias", {out_features}, dtype)});
  return g.append(name, LinearOp{.activation = layer.activation}, std::move(operands));
}

namespace {

/// x, "NAME.weight" [first, second, kernel..] and, where the layer has one, "NAME.bias".
template <class Layer>
std::vector<Operand> windowed(GraphBuilder& g, const std::string& name, Value x, int64_t first,
                              int64_t second, int64_t out_channels, const Layer& layer) {
  const Dtype dtype = g.type(x).dtype;
  const int rank = g.type(x).shape.rank();
  const auto& [height, width] = layer.kernel;
  const Shape weight = rank == 3   ? Shape{first, second, width}
                       : rank == 4 ? Shape{first, second, height, width}
                                   : Shape{first, second, layer.depth.kernel, height, width};
  std::vector<Operand> operands{{"x", x}, {"weight", g.parameter(name + ".weight", weight, dtype)}};
  if (layer.has_bias)
    operands.push_back({"bias", g.parameter(name + ".bias", {out_channels}, dtype)});
  return operands;
}

}  // namespace

Value conv(GraphBuilder& g, const std::string& name, Value x, int64_t out_channels,
           const ConvLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const bool is_last = layer.x_layout.value_or(layer.layout) == ChannelLayout::channels_last;
  const int64_t in = extent(g, name, x, is_last ? -1 : 1);
  WIDE_REQUIRE(layer.groups >= 1 && in % layer.groups == 0,
               "graph: " + name + ": groups is " + std::to_string(layer.groups) +
                   ", expected a divisor of in_channels = " + std::to_string(in));
  const int rank = g.type(x).shape.rank();
  std::vector<Operand> operands =
      windowed(g, name, x, out_channels, in / layer.groups, out_channels, layer);
  ConvOp op{.groups = layer.groups,
            .stride = layer.stride,
            .padding = layer.padding,
            .dilation = layer.dilation,
            .layout = layer.layout,
            .x_layout = layer.x_layout};
  if (rank == 3) op.stride.height = op.dilation.height = 1, op.padding.height = 0;
  if (rank == 5) {
    op.depth.stride = layer.depth.stride;
    op.depth.padding = layer.depth.padding;
    op.depth.dilation = layer.depth.dilation;
  }
  return g.append(name, op, std::move(operands));
}

Value conv_transpose(GraphBuilder& g, const std::string& name, Value x, int64_t out_channels,
                     const ConvTransposeLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const int64_t in = extent(g, name, x, 1);
  WIDE_REQUIRE(layer.groups >= 1 && out_channels % layer.groups == 0,
               "graph: " + name + ": groups is " + std::to_string(layer.groups) +
                   ", expected a divisor of out_channels = " + std::to_string(out_channels));
  const int rank = g.type(x).shape.rank();
  std::vector<Operand> operands =
      windowed(g, name, x, in, out_channels / layer.groups, out_channels, layer);
  ConvTransposeOp op{.groups = layer.groups,
                     .stride = layer.stride,
                     .padding = layer.padding,
                     .dilation = layer.dilation,
                     .output_padding = layer.output_padding};
  if (rank == 3) {
    op.stride.height = op.dilation.height = 1;
    op.padding.height = op.output_padding.height = 0;
  }
  if (rank == 5) {
    op.depth.stride = layer.depth.stride;
    op.depth.padding = layer.depth.padding;
    op.depth.dilation = layer.depth.dilation;
    op.depth_output_padding = layer.depth_output_padding;
  }
  return g.append(name, op, std::move(operands));
}

Value depth_to_space(GraphBuilder& g, const std::string& name, Value x, int64_t block) {
  const int rank = type_of(g, name, x).shape.rank();
  DepthToSpaceOp op{.block = {rank == 3 ? 1 : block, block}};
  if (rank == 5) op.depth_block = block;
  return g.append(name, op, {{"x", x}});
}

Value upsample(GraphBuilder& g, const std::string& name, Value x, int64_t factor) {
  const int rank = type_of(g, name, x).shape.rank();
  UpsampleOp op{.factor = {rank == 3 ? 1 : factor, factor}};
  if (rank == 5) op.depth_factor = factor;
  return g.append(name, op, {{"x", x}});
}

Value interpolate(GraphBuilder& g, const std::string& name, Value x, int64_t out_height,
                  int64_t out_width, CoordinateMode coordinates) {
  return g.append(
      name,
      InterpolateOp{.out_height = out_height, .out_width = out_width, .coordinates = coordinates},
      {{"x", x}});
}

Value matmul(GraphBuilder& g, const std::string& name, Value left, Value right,
             const MatmulLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const auto transposed = [&](const char* operand, Value value) {
    require_present(name, operand, value);
    const Shape& shape = g.type(value).shape;
    WIDE_REQUIRE(shape.rank() >= 3 && shape[0] == kBatch,
                 "graph: " + name + ": " + operand + " is " + to_string(g.type(value)) +
                     ", expected a batch and two or more axes after it");
    Dims order = shape;
    for (int axis = 0; axis < order.rank(); ++axis) order[axis] = axis;
    std::swap(order[order.rank() - 1], order[order.rank() - 2]);
    return g.append(name + "." + operand, TransposeOp{order}, {{"x", value}});
  };
  if (layer.transposes_left) left = transposed("left", left);
  if (!layer.transposes_right) right = transposed("right", right);
  return g.append(name, MatmulOp{.alpha = layer.alpha}, {{"left", left}, {"right", right}});
}

Value attention(GraphBuilder& g, const std::string& name, Value x, int64_t heads,
                const AttentionLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const Dtype dtype = type_of(g, name, x).dtype;
  const int64_t d = extent(g, name, x, -1);
  std::vector<Operand> operands{{"x", x}, {"key_lengths", layer.key_lengths}};
  if (layer.key.is_absent()) {
    WIDE_REQUIRE(layer.value.is_absent(),
                 "graph: " + name + ": value is present, expected a key with it");
    operands.push_back({"qkv_weight", g.parameter(name + ".in_proj_weight", {3 * d, d}, dtype)});
  } else {
    const Value value = layer.value.is_absent() ? layer.key : layer.value;
    operands.push_back({"key", layer.key});
    operands.push_back({"value", value});
    append_cross_weights(g, name, operands, d, extent(g, name, layer.key, -1),
                         extent(g, name, value, -1), dtype);
  }
  operands.push_back({"out_weight", g.parameter(name + ".out_proj.weight", {d, d}, dtype)});
  if (layer.has_bias) {
    operands.push_back({"qkv_bias", g.parameter(name + ".in_proj_bias", {3 * d}, dtype)});
    operands.push_back({"out_bias", g.parameter(name + ".out_proj.bias", {d}, dtype)});
  }
  return g.append(name, AttentionOp{.heads = heads, .is_causal = layer.is_causal},
                  std::move(operands));
}

Value flash_attention(GraphBuilder& g, const std::string& name, Value q, Value k, Value v,
                      int64_t heads, const FlashAttentionLayer& layer) {
  return g.append(name,
                  FlashAttentionOp{.heads = heads,
                                   .kv_heads = layer.kv_heads,
                                   .is_causal = layer.is_causal,
                                   .scale = layer.scale,
                                   .window = layer.window,
                                   .soft_cap = layer.soft_cap,
                                   .aligns_to_lengths = layer.aligns_to_lengths},
                  {{"q", q},
                   {"k", k},
                   {"v", v},
                   {"key_lengths", layer.key_lengths},
                   {"bias", layer.bias},
                   {"slopes", layer.slopes}});
}

Value lstm(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
           const RecurrentLayer& layer) {
  return recurrent_rows(g, name, x, hidden, RecurrentCell::lstm, layer);
}
Value gru(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
          const RecurrentLayer& layer) {
  return recurrent_rows(g, name, x, hidden, RecurrentCell::gru, layer);
}
RecurrentStates recurrent(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
                          RecurrentCell cell, const RecurrentLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  const RecurrentOp op{
      .cell = cell, .is_reversed = layer.is_reversed, .writes_cell = cell == RecurrentCell::lstm};
  const auto [y, last_cell] = recurrent_node(g, name, x, hidden, op, layer);
  const int64_t last = layer.is_reversed ? 0 : extent(g, name, x, 1) - 1;
  const std::string node = recurrent_name(name, layer);
  const Value step = slice(g, node + ".last_step", y, 1, last, 1);
  return {y, reshape(g, node + ".last_hidden", step, {kBatch, hidden}), last_cell};
}
Value bidirectional(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
                    RecurrentCell cell, const RecurrentLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  WIDE_REQUIRE(layer.first_hidden.is_absent() && layer.first_cell.is_absent(),
               "graph: " + name +
                   ": first_hidden is present, expected none: both directions would "
                   "begin with it");
  RecurrentLayer way = layer;
  const Value forward = recurrent_rows(g, name, x, hidden, cell, way);
  way.is_reversed = true;
  way.suffix += "_reverse";
  const Value backward = recurrent_rows(g, name, x, hidden, cell, way);
  return concat(g, name + ".both", {forward, backward}, 2);
}

Value embedding(GraphBuilder& g, const std::string& name, Value ids, int64_t vocab, int64_t dim) {
  const GraphBuilder::Rollback rollback(g);
  return g.append(name, EmbeddingOp{},
                  {{"ids", ids}, {"table", g.parameter(name + ".weight", {vocab, dim})}});
}

Value layernorm(GraphBuilder& g, const std::string& name, Value x, float epsilon) {
  const GraphBuilder::Rollback rollback(g);
  return g.append(name, LayernormOp{.epsilon = epsilon},
                  affine(g, name, x, extent(g, name, x, -1)));
}
Value rmsnorm(GraphBuilder& g, const std::string& name, Value x, float epsilon) {
  const GraphBuilder::Rollback rollback(g);
  return g.append(name, RmsnormOp{.epsilon = epsilon},
                  affine(g, name, x, extent(g, name, x, -1), false));
}
Value batchnorm(GraphBuilder& g, const std::string& name, Value x, float epsilon) {
  const GraphBuilder::Rollback rollback(g);
  const int64_t channels = extent(g, name, x, 1);
  std::vector<Operand> operands = affine(g, name, x, channels);
  operands.push_back(
      {"running_mean", g.parameter(name + ".running_mean", {channels}, Dtype::fp32)});
  operands.push_back(
      {"running_variance", g.parameter(name + ".running_var", {channels}, Dtype::fp32)});
  return g.append(name, BatchnormOp{.epsilon = epsilon}, std::move(operands));
}
Value groupnorm(GraphBuilder& g, const std::string& name, Value x, int64_t groups, float epsilon) {
  const GraphBuilder::Rollback rollback(g);
  return g.append(name, GroupnormOp{.groups = groups, .epsilon = epsilon},
                  affine(g, name, x, extent(g, name, x, 1)));
}
Value instancenorm(GraphBuilder& g, const std::string& name, Value x, float epsilon) {
  const GraphBuilder::Rollback rollback(g);
  return g.append(name, InstancenormOp{.epsilon = epsilon},
                  affine(g, name, x, extent(g, name, x, 1)));
}

Value pointwise(GraphBuilder& g, const std::string& name, Value x, PointwiseFunction function,
                const PointwiseLayer& layer) {
  const GraphBuilder::Rollback rollback(g);
  std::vector<Operand> operands{{"x", x}};
  if (function == PointwiseFunction::prelu) {
    operands.push_back(
        {"slope", g.parameter(name + ".weight", {layer.num_slopes}, type_of(g, name, x).dtype)});
  }
  return g.append(name,
                  PointwiseOp{.function = function,
                              .slope = layer.slope,
                              .alpha = layer.alpha,
                              .beta = layer.beta,
                              .low = layer.low,
                              .high = layer.high},
                  std::move(operands));
}
Value add(GraphBuilder& g, const std::string& name, Value x, Value other) {
  return binary(g, name, x, other, BinaryFunction::add);
}
Value binary(GraphBuilder& g, const std::string& name, Value x, Value other,
             BinaryFunction function) {
  return g.append(name, BinaryOp{.function = function}, {{"x", x}, {"other", other}});
}

Value max_pool(GraphBuilder& g, const std::string& name, Value x, const PoolingWindow& window) {
  return g.append(name, PoolingOp{.rows = window, .columns = window}, {{"x", x}});
}
Value average_pool(GraphBuilder& g, const std::string& name, Value x, const PoolingWindow& window,
                   bool counts_padding) {
  return g.append(name,
                  PoolingOp{.mode = PoolingMode::average,
                            .rows = window,
                            .columns = window,
                            .counts_padding = counts_padding},
                  {{"x", x}});
}
Value adaptive_average_pool(GraphBuilder& g, const std::string& name, Value x, int64_t out_height,
                            int64_t out_width) {
  return g.append(
      name,
      PoolingOp{
          .mode = PoolingMode::adaptive_average, .out_height = out_height, .out_width = out_width},
      {{"x", x}});
}
Value global_average_pool(GraphBuilder& g, const std::string& name, Value x) {
  return adaptive_average_pool(g, name, x, 1, 1);
}
Value softmax(GraphBuilder& g, const std::string& name, Value x) {
  return g.append(name, SoftmaxOp{}, {{"x", x}});
}
Value log_softmax(GraphBuilder& g, const std::string& name, Value x) {
  return g.append(name, SoftmaxOp{.is_log = true}, {{"x", x}});
}
Value dropout(GraphBuilder& g, const std::string& name, Value x, float probability) {
  return g.append(name, DropoutOp{.probability = probability}, {{"x", x}});
}
Value dropout(GraphBuilder& g, const std::string& name, Value x) {
  const GraphBuilder::Rollback rollback(g);
  const Value probability = g.parameter(name + ".probability", {1}, Dtype::fp32);
  return g.append(name, DropoutOp{.probability = 0}, {{"x", x}, {"probability", probability}});
}

Value flatten(GraphBuilder& g, const std::string& name, Value x) {
  int64_t features = 1;
  const Shape& shape = type_of(g, name, x).shape;
  for (int axis = 1; axis < shape.rank(); ++axis) features *= shape[axis];
  return reshape(g, name, x, {kBatch, features});
}
Value reshape(GraphBuilder& g, const std::string& name, Value x, const Shape& shape) {
  return g.append(name, ReshapeOp{.shape = shape}, {{"x", x}});
}
Value concat(GraphBuilder& g, const std::string& name, std::initializer_list<Value> parts,
             int axis) {
  std::vector<Operand> operands;
  for (const Value part : parts) {
    operands.push_back({"part" + std::to_string(operands.size()), part});
    require_present(name, operands.back().name, part);
  }
  return g.append(name, ConcatOp{.axis = axis}, std::move(operands));
}
Value slice(GraphBuilder& g, const std::string& name, Value x, int axis, int64_t first,
            int64_t count) {
  return g.append(name, SliceOp{.axis = axis, .first = first, .count = count}, {{"x", x}});
}
Value transpose(GraphBuilder& g, const std::string& name, Value x, const Dims& order) {
  return g.append(name, TransposeOp{.order = order}, {{"x", x}});
}
Value ensemble(GraphBuilder& g, const std::string& name, Value x, EnsembleFunction function) {
  return g.append(name, EnsembleOp{.ensemble = function}, {{"x", x}});
}

}  // namespace wide::layers
