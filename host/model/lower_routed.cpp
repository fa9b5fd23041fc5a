// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/model/batch.hpp"
#include "host/model/ragged.hpp"
#include "host/model/rewrite.hpp"
#include "host/model/routed.hpp"
#include "host/model/shape_text.hpp"
#include "wide/routed_linear.hpp"
#include "wide/routed_mlp.hpp"

namespace wide {

namespace {

[[noreturn]] void refuse(const Lowering& l, const Node& node, const std::string& why) {
  throw_unsupported(node_text(l.graph(), node) + "rows are routed to members, " + why);
}

/// [R, D], in their places.
PlacedView rows_at(const Lowering& l, const Node& node, Value value, const Place& place) {
  if (place.shape.rank() != 2) {
    refuse(l, node,
           "expected values [batch, D], got " + to_string(place.shape) +
               ": the rows of a sample are not routed together");
  }
  require_side_by_side(node.name, value, place);
  return shared_view(place, l.device());
}
PlacedView rows_of(const Lowering& l, const Node& node, Value value) {
  return rows_at(l, node, value, l.place(value));
}

/// As many as y has.
PlacedView residual_of(Lowering& l, const Node& node) {
  const Value residual = node.operand("residual");
  if (residual.is_absent()) return {};
  return rows_at(l, node, residual, l.repeated(node, residual));
}

PlacedView gates_of(const Lowering& l, const Node& node) {
  return l.takes_gates(node.outputs[0]) ? l.gates_of_routing : PlacedView{};
}

void lower_routed_linear(Lowering& l, const Node& node, const LinearOp& op) {
  const PlacedView x = rows_of(l, node, node.operand("x")), residual = residual_of(l, node),
                   y = rows_of(l, node, node.outputs[0]), weight = l.parameter(node, "weight"),
                   bias = l.parameter(node, "bias"), gates = gates_of(l, node),
                   first_rows = l.first_rows_of_routing, order = l.order_of_routing;
  const auto arguments = [=](const Bases& at) {
    return RoutedLinearArguments{.x = at.at(x),
                                 .weight = at.at(weight),
                                 .bias = at.at(bias),
                                 .y = at.at(y),
                                 .residual = at.at(residual),
                                 .gates = at.at(gates),
                                 .first_rows = at.at(first_rows),
                                 .order = at.at(order)};
  };
  RoutedLinearProblem like;
  like.allow_tf32 = l.options().allows_tf32;
  like.gathers = like.scatters = true;
  like.epilogue.activation = op.activation;
  like.epilogue.residual = op.residual;
  set_weight_format(l, node, op, like);
  const RoutedLinearPlan plan =
      make_routed_linear_plan(l.context(), describe_routed_linear(arguments(l.example()), like),
                              l.plan_options(node.name, "routed_linear"));
  l.add_planned(node.name, "routed_linear", plan, arguments);
}

void lower_routed_mlp(Lowering& l, const Node& node, const MlpOp& op) {
  const PlacedView x = rows_of(l, node, node.operand("x")), y = rows_of(l, node, node.outputs[0]),
                   weights = l.parameter(node, "weights"), gates = gates_of(l, node),
                   first_rows = l.first_rows_of_routing, order = l.order_of_routing;
  const auto arguments = [=](const Bases& at) {
    return RoutedMlpArguments{.x = at.at(x),
                              .weights = at.at(weights),
                              .y = at.at(y),
                              .gates = at.at(gates),
                              .first_rows = at.at(first_rows),
                              .order = at.at(order)};
  };
  RoutedMlpProblem like;
  like.widths = op.widths;
  like.allow_tf32 = l.options().allows_tf32;
  like.gathers = like.scatters = true;
  like.has_bias = op.has_bias;
  like.activation = op.activation;
  like.last_activation = op.last_activation;
  const RoutedMlpPlan plan =
      make_routed_mlp_plan(l.context(), describe_routed_mlp(arguments(l.example()), like),
                           l.plan_options(node.name, "routed_mlp"));
  l.add_planned(node.name, "routed_mlp", plan, arguments);
}

/// A norm of rows or a chain, which looks the parameters of each row up.
void lower_routed_norm(Lowering& l, const Node& node) {
  (void)rows_of(l, node, node.outputs[0]);  // whose rows are routed
  l.with_repeated_operands(node, [&] { lower_selected(l, node, -1, l.num_members()); });
}

bool is_norm_of_rows(const Node& node) {
  const Operation& op = node.operation;
  return std::holds_alternative<LayernormOp>(op) || std::holds_alternative<RmsnormOp>(op) ||
         std::holds_alternative<ChainOp>(op);
}

}  // namespace

Graph with_shared_inputs(const Graph& graph) {
  Rewrite rewrite(graph, {}, true);
  for (const Node& node : graph.nodes()) rewrite.copy(node);
  return rewrite.finish();
}

void lower_routed(Lowering& l, const Node& node) {
  if (!is_batched(l.graph(), node.outputs[0])) return;  // computed when members are loaded
  if (std::holds_alternative<EnsembleOp>(node.operation)) {
    refuse(l, node, "expected each row computed by all of them");
  }
  if (l.is_shared(node.outputs[0])) return lower_selected(l, node, -1, 1);
  if (treats_rows_alike(l, node)) {
    return l.with_repeated_operands(node, [&] { lower_selected(l, node, -1, l.num_members()); });
  }
  if (const auto* linear = std::get_if<LinearOp>(&node.operation)) {
    return lower_routed_linear(l, node, *linear);
  }
  if (const auto* mlp = std::get_if<MlpOp>(&node.operation)) {
    return lower_routed_mlp(l, node, *mlp);
  }
  if (is_norm_of_rows(node)) return lower_routed_norm(l, node);
  refuse(l, node,
         "expected linear, layernorm, rmsnorm, chain, or an operation in which members do not "
         "differ");
}

}  // namespace wide
