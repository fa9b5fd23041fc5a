// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Norms of rows and of channels, chains, softmax, pooling and interpolate.
#include "host/model/lowering.hpp"
#include "wide/batchnorm.hpp"
#include "wide/chain.hpp"
#include "wide/groupnorm.hpp"
#include "wide/interpolate.hpp"
#include "wide/layernorm.hpp"
#include "wide/pooling.hpp"
#include "wide/rmsnorm.hpp"
#include "wide/softmax.hpp"

namespace wide {

namespace {

/// [B, N*C, positions..], copied where norms of channels cannot read its positions in
/// place.
PlacedView channels_of(Lowering& l, const Node& node) {
  const PlacedView x = l.joined(node, "x");
  require_one_position_stride(node.name, node.operand("x"), l.operand(node, "x"));
  return x;
}

void lower_groups(Lowering& l, const Node& node, const char* primitive, int64_t groups,
                  float epsilon) {
  const PlacedView x = channels_of(l, node), gamma = l.parameter(node, "gamma"),
                   beta = l.parameter(node, "beta"), y = l.joined(node, node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return GroupnormArguments{
        .x = at.at(x), .gamma = at.at(gamma), .beta = at.at(beta), .y = at.at(y)};
  };
  GroupnormProblem like;
  like.num_members = l.members_of(node);
  like.groups = groups;
  like.epsilon = epsilon;
  l.add(node, primitive, "groupnorm", describe_groupnorm(arguments(l.example()), like),
        make_groupnorm_plan, arguments);
}

/// A norm of rows, whose operands are all of them among a chain's; `like` has what the operation
/// says.
template <class Problem, class Plan, class Arguments>
void lower_rows(Lowering& l, const Node& node, const char* primitive, Problem like,
                Problem (*describe)(const Arguments&, const Problem&),
                Plan (*make)(const Context&, const Problem&, const PlanOptions&),
                Arguments (*of)(const ChainArguments&)) {
  const PlacedView x = l.rows(node, "x"), bias = l.parameter(node, "bias"),
                   residual = l.rows(node, "residual"), gamma = l.parameter(node, "gamma"),
                   beta = l.parameter(node, "beta"), y = l.rows(node, node.outputs[0]),
                   sum = node.outputs.size() > 1 ? l.rows(node, node.outputs[1]) : PlacedView{},
                   ids = l.norm_ids(node);
  const auto arguments = [=](const Bases& at) {
    return of({.x = at.at(x),
               .bias = at.at(bias),
               .residual = at.at(residual),
               .gamma = at.at(gamma),
               .beta = at.at(beta),
               .y = at.at(y),
               .sum = at.at(sum),
               .ids = at.at(ids)});
  };
  like.num_members = l.members_of(node);
  like.features = l.graph().type(node.outputs[0]).shape.back();
  like.first_id = ids.storage < 0 ? 0 : l.problem().first_id;
  l.add(node, primitive, primitive, describe(arguments(l.example()), like), make, arguments);
}

LayernormArguments layernorm_of(const ChainArguments& a) {
  return {a.x, a.gamma, a.beta, a.y, a.residual, a.sum, a.ids};
}
RmsnormArguments rmsnorm_of(const ChainArguments& a) {
  return {a.x, a.gamma, a.y, a.residual, a.sum, a.ids};
}
ChainArguments chain_of(const ChainArguments& a) {
  return a;
}

}  // namespace

void lower(Lowering& l, const Node& node, const LayernormOp& op) {
  LayernormProblem like;
  like.epsilon = op.epsilon;
  lower_rows(l, node, "layernorm", like, describe_layernorm, make_layernorm_plan, layernorm_of);
}

void lower(Lowering& l, const Node& node, const RmsnormOp& op) {
  RmsnormProblem like;
  like.epsilon = op.epsilon;
  lower_rows(l, node, "rmsnorm", like, describe_rmsnorm, make_rmsnorm_plan, rmsnorm_of);
}

void lower(Lowering& l, const Node& node, const ChainOp& op) {
  ChainProblem like;
  like.activation = op.activation;
  like.norm = op.norm;
  like.epsilon = op.epsilon;
  lower_rows(l, node, "chain", like, describe_chain, make_chain_plan, chain_of);
}

void lower(Lowering& l, const Node& node, const BatchnormOp& op) {
  const PlacedView x = channels_of(l, node), gamma = l.parameter(node, "gamma"),
                   beta = l.parameter(node, "beta"), mean = l.parameter(node, "running_mean"),
                   variance = l.parameter(node, "running_variance"),
                   y = l.joined(node, node.outputs[0]);
  const auto arguments = [=](const Bases& at) {
    return BatchnormArguments{.x = at.at(x),
                              .gamma = at.at(gamma),
                              .beta = at.at(beta),
                              .running_mean = at.at(mean),
                              .running_variance = at.at(variance),
                              .y = at.at(y),
                              .epsilon = {},
                              .momentum = {}};
  };
  BatchnormProblem like;
  like.num_members = l.members_of(node);
  like.epsilon = op.epsilon;
  l.add(node, operation_name(l.graph(), node), "batchnorm",
        describe_batchnorm(arguments(l.example()), like), make_batchnorm_plan, arguments);
}

void lower(Lowering& l, const Node& node, const GroupnormOp& op) {
  lower_groups(l, node, "groupnorm", op.groups, op.epsilon);
}

void lower(Lowering& l, const Node& node, const InstancenormOp& op) {
  const Shape& shape = l.graph().type(node.operand("x")).shape;
  lower_groups(l, node, shape.rank() == 3 ? "instancenorm1d" : "instancenorm2d", shape[1],
               op.epsilon);
}

void lower(Lowering& l, const Node& node, const SoftmaxOp& op) {
  const PlacedView x = l.rows(node, "x"), y = l.rows(node, node.outputs[0]);
  SoftmaxProblem like;
  like.num_members = l.members_of(node);
  like.features = l.graph().type(node.outputs[0]).shape.back();
  like.is_log = op.is_log;
  const auto arguments = [=](const Bases& at) { return SoftmaxArguments{at.at(x), at.at(y)}; };
  l.add(node, "softmax", "softmax", describe_softmax(arguments(l.example()), like),
        make_softmax_plan, arguments);
}

void lower(Lowering& l, const Node& node, const PoolingOp& op) {
  const PlacedView x = l.joined(node, "x"), y = l.joined(node, node.outputs[0]);
  PoolingProblem like;
  like.num_members = l.members_of(node);
  like.mode = op.mode;
  like.rows = op.rows;
  like.columns = op.columns;
  if (l.graph().type(node.outputs[0]).shape.rank() == 3) like.rows = {};
  like.ceil_mode = op.ceil_mode;
  like.counts_padding = op.counts_padding;
  like.layout = op.layout;
  const auto arguments = [=](const Bases& at) { return PoolingArguments{at.at(x), at.at(y)}; };
  l.add(node, "pooling", "pooling", describe_pooling(arguments(l.example()), like),
        make_pooling_plan, arguments);
}

void lower(Lowering& l, const Node& node, const InterpolateOp& op) {
  const PlacedView x = l.joined(node, "x"), y = l.joined(node, node.outputs[0]);
  InterpolateProblem like;
  like.num_members = l.members_of(node);
  like.coordinates = op.coordinates;
  if (l.graph().type(node.outputs[0]).shape.rank() == 4) like.row_scale = op.row_scale;
  like.column_scale = op.column_scale;
  like.layout = op.layout;
  const auto arguments = [=](const Bases& at) { return InterpolateArguments{at.at(x), at.at(y)}; };
  l.add(node, "interpolate", "interpolate", describe_interpolate(arguments(l.example()), like),
        make_interpolate_plan, arguments);
}

}  // namespace wide
