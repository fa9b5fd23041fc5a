// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Nodes with weights to multiply by: linear, conv, attention, flash_attention, recurrent,
// embedding.
#include "host/model/batch.hpp"
#include "host/model/lowering.hpp"
#include "wide/attention.hpp"
#include "wide/embedding.hpp"
#include "wide/linear.hpp"
#include "wide/mlp.hpp"
#include "wide/recurrent.hpp"

namespace wide {

namespace {

/// key_lengths [N, B], or [B] where one is for all.
PlacedView key_lengths_of(const Lowering& l, const Node& node) {
  const Value value = node.operand("key_lengths");
  if (value.is_absent()) return {};
  const Place place = l.place(value);
  require_side_by_side(node.name, value, place);
  return place.is_shared() ? shared_view(place, l.device()) : stacked_view(place, l.device());
}

/// The bias of scores as [N or 1, B or 1, heads or 1, Tq, Tk]: a missing axis has a stride of 0,
/// and so have queries that share a row.
PlacedView score_bias_of(Lowering& l, const Node& node, int64_t queries) {
  const Value value = node.operand("bias");
  if (value.is_absent()) return {};
  const bool is_parameter = !is_batched(l.graph(), value);
  const bool is_shared = !is_parameter && l.place(value).is_shared();
  if (!is_parameter) require_side_by_side(node.name, value, l.place(value));
  const PlacedView view = is_parameter ? l.parameter(node, "bias")
                          : is_shared  ? shared_view(l.place(value), l.device())
                                       : stacked_view(l.place(value), l.device());
  const Shape& own = view.view.shape;
  const Strides& step = view.view.strides;
  Shape shape{is_shared ? 1 : own[0], is_parameter ? 1 : own[is_shared ? 0 : 1], 1, queries, 1};
  Strides strides{is_shared ? 0 : step[0], is_parameter ? 0 : step[is_shared ? 0 : 1], 0, 0, 0};
  for (int axis = 2, from = own.rank() - 3; axis < 5; ++axis, ++from) {
    if (axis != 3) shape[axis] = own[from];
    if (own[from] != 1 || axis == 4) strides[axis] = step[from];
  }
  return view.as(shape, strides);
}

}  // namespace

void lower(Lowering& l, const Node& node, const LinearOp& op) {
  const bool shares_input = l.is_shared(node.operand("x")) && l.members_of(node) > 1;
  PlacedView x = l.rows(node, "x");
  if (shares_input) x = without_members(x);
  const PlacedView weight = l.parameter(node, "weight"), bias = l.parameter(node, "bias");
  const PlacedView residual = l.rows(node, "residual"), y = l.rows(node, node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return LinearArguments{.x = at.at(x),
                           .weight = at.at(weight),
                           .bias = at.at(bias),
                           .y = at.at(y),
                           .residual = at.at(residual)};
  };
  LinearProblem like;
  like.shared_input = shares_input;
  like.allow_tf32 = l.options().allows_tf32;
  like.allow_rounded_weights = l.options().allows_rounded_weights;
  like.epilogue.activation = op.activation;
  like.epilogue.residual = op.residual;
  set_weight_format(l, node, op, like);
  l.add(node, "linear", "linear", describe_linear(arguments(l.example()), like), make_linear_plan,
        arguments);
}

void lower(Lowering& l, const Node& node, const MatmulOp& op) {
  const auto matrices = [&](const char* name) {
    const Value value = node.operand(name);
    return value.is_absent()
               ? PlacedView{}
               : matrices_view(node.name, value, l.own_operand(node, name), l.device());
  };
  const PlacedView x = matrices("left"), right = matrices("right"), residual = matrices("residual");
  const PlacedView y =
      matrices_view(node.name, node.outputs[0], l.place(node.outputs[0]), l.device());
  // [P, L, K] as [L, P, K]
  const auto swapped = [](const auto& dims) {
    auto all = dims;
    std::swap(all[0], all[1]);
    return all;
  };
  const PlacedView weight = right.as(swapped(right.view.shape), swapped(right.view.strides));
  const auto arguments = [=](const Bases& at) {
    return LinearArguments{
        .x = at.at(x), .weight = at.at(weight), .y = at.at(y), .residual = at.at(residual)};
  };
  LinearProblem like;
  like.allow_tf32 = l.options().allows_tf32;
  like.epilogue.alpha = op.alpha;
  like.epilogue.activation = op.activation;
  like.epilogue.residual = op.residual;
  l.add(node, "matmul", "linear", describe_linear(arguments(l.example()), like), make_linear_plan,
        arguments);
}

void lower(Lowering& l, const Node& node, const MlpOp& op) {
  const bool shares_input = l.is_shared(node.operand("x")) && l.members_of(node) > 1;
  PlacedView x = l.rows(node, "x");
  if (shares_input) x = without_members(x);
  const PlacedView weights = l.parameter(node, "weights"), y = l.rows(node, node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return MlpArguments{.x = at.at(x), .weights = at.at(weights), .y = at.at(y)};
  };
  MlpProblem like;
  like.widths = op.widths;
  like.has_bias = op.has_bias;
  like.activation = op.activation;
  like.last_activation = op.last_activation;
  like.shared_input = shares_input;
  like.allow_tf32 = l.options().allows_tf32;
  l.add(node, "mlp", "mlp", describe_mlp(arguments(l.example()), like), make_mlp_plan, arguments);
}

void lower(Lowering& l, const Node& node, const ConvOp& op) {
  const int64_t members = l.members_of(node);
  const Value x_value = node.operand("x");
  const int rank = l.graph().type(x_value).shape.rank();
  const bool is_last = op.layout == ChannelLayout::channels_last;
  const Dims order = !is_last    ? Dims{}
                     : rank == 3 ? Dims{0, 2, 1}
                     : rank == 4 ? Dims{0, 2, 3, 1}
                                 : Dims{0, 2, 3, 4, 1};
  // One x for all members: without groups their output channels are those of one convolution.
  const bool is_one = l.is_shared(x_value) && members > 1 && op.groups == 1;
  if (is_one) require_side_by_side(node.name, x_value, l.place(x_value));
  const PlacedView x = is_one ? shared_view(l.place(x_value), l.device()) : l.joined(node, "x");
  const PlacedView weight = l.joined_parameter(node, "weight", order);
  const PlacedView bias = l.joined_parameter(node, "bias");
  const PlacedView residual = l.joined(node, "residual"), y = l.joined(node, node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return ConvArguments{.x = at.at(x),
                         .weight = at.at(weight),
                         .bias = at.at(bias),
                         .y = at.at(y),
                         .residual = at.at(residual)};
  };
  ConvProblem like;
  like.num_members = is_one ? 1 : members;
  like.groups = op.groups;
  like.stride = op.stride;
  like.padding = op.padding;
  like.dilation = op.dilation;
  like.depth = op.depth;
  like.layout = op.layout;
  like.x_layout = op.x_layout;
  like.allow_tf32 = l.options().allows_tf32;
  like.epilogue.activation = op.activation;
  like.epilogue.residual = op.residual;
  l.add(node, operation_name(l.graph(), node), "conv", describe_conv(arguments(l.example()), like),
        make_conv_plan, arguments);
}

void lower(Lowering& l, const Node& node, const AttentionOp& op) {
  const PlacedView x = l.positions(node, "x"), key = l.positions(node, "key"),
                   value = l.positions(node, "value"), y = l.positions(node.outputs[0]),
                   lengths = key_lengths_of(l, node);
  const BasicAttentionParameters<PlacedView> p{
      l.parameter(node, "qkv_weight"), l.parameter(node, "q_weight"),
      l.parameter(node, "k_weight"),   l.parameter(node, "v_weight"),
      l.parameter(node, "qkv_bias"),   l.parameter(node, "out_weight"),
      l.parameter(node, "out_bias")};
  const auto arguments = [=](const Bases& at) {
    return AttentionArguments{
        .x = at.at(x),
        .key = at.at(key),
        .value = at.at(value),
        .parameters = {at.at(p.qkv_weight), at.at(p.q_weight), at.at(p.k_weight), at.at(p.v_weight),
                       at.at(p.qkv_bias), at.at(p.out_weight), at.at(p.out_bias)},
        .key_lengths = at.at(lengths),
        .y = at.at(y)};
  };
  AttentionProblem like;
  like.num_members = l.members_of(node);
  like.heads = op.heads;
  like.is_causal = op.is_causal;
  l.add(node, "attention", "attention", describe_attention(arguments(l.example()), like),
        make_attention_plan, arguments);
}

void lower(Lowering& l, const Node& node, const FlashAttentionOp& op) {
  const PlacedView q = l.positions(node, "q"), k = l.positions(node, "k"),
                   v = l.positions(node, "v"), y = l.positions(node.outputs[0]),
                   lengths = key_lengths_of(l, node),
                   bias = score_bias_of(l, node, l.graph().type(node.operand("q")).shape[1]),
                   slopes = l.parameter(node, "slopes");
  const auto arguments = [=](const Bases& at) {
    return FlashAttentionArguments{.q = at.at(q),
                                   .k = at.at(k),
                                   .v = at.at(v),
                                   .key_lengths = at.at(lengths),
                                   .slopes = at.at(slopes),
                                   .y = at.at(y),
                                   .bias = at.at(bias)};
  };
  FlashAttentionProblem like;
  like.num_members = l.members_of(node);
  like.heads = op.heads;
  like.kv_heads = op.kv_heads;
  like.scale = op.scale;
  like.is_causal = op.is_causal;
  like.window = op.window;
  like.soft_cap = op.soft_cap;
  like.aligns_to_lengths = op.aligns_to_lengths;
  l.add(node, "flash_attention", "flash_attention",
        describe_flash_attention(arguments(l.example()), like), make_flash_attention_plan,
        arguments);
}

void lower(Lowering& l, const Node& node, const RecurrentOp& op) {
  const Value x_value = node.operand("x");
  const bool shares_input = l.is_shared(x_value) && l.members_of(node) > 1;
  if (shares_input) require_one_row_stride(node.name, x_value, l.place(x_value));
  const PlacedView x =
      shares_input ? shared_view(l.place(x_value), l.device()) : l.positions(node, "x");
  const PlacedView input_weight = l.parameter(node, "input_weight"),
                   hidden_weight = l.parameter(node, "hidden_weight"),
                   input_bias = l.parameter(node, "input_bias"),
                   hidden_bias = l.parameter(node, "hidden_bias"),
                   first_hidden = l.rows(node, "first_hidden"),
                   first_cell = l.rows(node, "first_cell"), y = l.positions(node.outputs[0]),
                   last_cell = op.writes_cell ? l.rows(node, node.outputs[1]) : PlacedView{};
  const auto arguments = [=](const Bases& at) {
    return RecurrentArguments{.x = at.at(x),
                              .input_weight = at.at(input_weight),
                              .hidden_weight = at.at(hidden_weight),
                              .input_bias = at.at(input_bias),
                              .hidden_bias = at.at(hidden_bias),
                              .y = at.at(y),
                              .first_hidden = at.at(first_hidden),
                              .first_cell = at.at(first_cell),
                              .last_cell = at.at(last_cell)};
  };
  RecurrentProblem like;
  like.cell = op.cell;
  like.is_reversed = op.is_reversed;
  like.shared_input = shares_input;
  like.allow_tf32 = l.options().allows_tf32;
  l.add(node, "recurrent", "recurrent", describe_recurrent(arguments(l.example()), like),
        make_recurrent_plan, arguments);
}

void lower(Lowering& l, const Node& node, const EmbeddingOp& op) {
  const Place ids_place = l.place(node.operand("ids"));
  const bool shares_ids = ids_place.is_shared();
  require_side_by_side(node.name, node.operand("ids"), ids_place);
  const PlacedView ids =
      shares_ids ? shared_view(ids_place, l.device()) : rows_view(ids_place, l.device());
  const PlacedView table = l.parameter(node, "table"), y = l.positions(node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return EmbeddingArguments{.ids = at.at(ids), .table = at.at(table), .y = at.at(y)};
  };
  EmbeddingProblem like;
  like.shared_ids = shares_ids;
  like.padding_id = op.padding_id;
  l.add(node, "embedding", "embedding", describe_embedding(arguments(l.example()), like),
        make_embedding_plan, arguments);
}

}  // namespace wide
