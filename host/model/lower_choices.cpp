// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a routed model runs before and after its nodes: the choice of members by scores, the routing
// of rows to them, and the sum of what a row's members make of it.
#include <algorithm>

#include "host/model/batch.hpp"
#include "host/model/routed.hpp"
#include "wide/ensemble.hpp"
#include "wide/routed_linear.hpp"
#include "wide/routing.hpp"
#include "wide/top_k.hpp"

namespace wide {

namespace {

/// [batch], or where rows have several members [batch, K].
Shape shape_of_choices(const ModelProblem& problem) {
  return problem.choices == 1 ? Shape{problem.batch} : Shape{problem.batch, problem.choices};
}

/// The ids, and the gates of the routed layers, out of scores.
PlacedView lower_top_k(Lowering& l) {
  const ModelProblem& problem = l.problem();
  const Dtype dtype = l.graph().type(l.graph().outputs()[0].value).dtype;
  const PlacedView scores = l.add_input("scores", dtype, {problem.batch, scores_of(problem)}),
                   ids = l.add_activation(Dtype::int32, {problem.batch, problem.choices}),
                   gates = l.add_activation(Dtype::fp32, {problem.batch, problem.choices});
  l.gates_of_routing = gates.as({rows_of_choices(problem)});
  const auto arguments = [=](const Bases& at) {
    return TopKArguments{.scores = at.at(scores), .ids = at.at(ids), .gates = at.at(gates)};
  };
  TopKProblem like;
  like.gate = problem.gate;
  const TopKPlan plan = make_top_k_plan(l.context(), describe_top_k(arguments(l.example()), like),
                                        l.plan_options("top_k", "top_k"));
  l.add_planned("top_k", "top_k", plan, arguments);
  return ids;
}

PlacedView ids_of(Lowering& l) {
  const ModelProblem& problem = l.problem();
  if (problem.router == Router::scores) return lower_top_k(l);
  const PlacedView ids = l.add_input("member_ids", problem.id_dtype, shape_of_choices(problem));
  if (problem.router == Router::gated_ids) {
    l.gates_of_routing =
        l.add_input("gates", Dtype::fp32, shape_of_choices(problem)).as({rows_of_choices(problem)});
  }
  return ids;
}

/// In rows of features side by side, whatever the view was.
Place in_dense_rows(Lowering& l, const std::string& output, const Place& from) {
  Place to = packed_place(from.dtype, from.shape, 1, -1);
  const bool has_rows = from.shape.rank() == 2 && from.strides[1] == 1;
  if (has_rows || to.strides == from.strides) return from;
  to.storage = l.add_activation(to.dtype, to.shape).storage;
  l.add_copy(output + ".copy", stacked_view(from, l.device()), stacked_view(to, l.device()),
             l.num_members());
  return to;
}

/// [R, D] of a place that is dense but for the strides of its rows.
PlacedView rows_view_of(const Lowering& l, const std::string& output, const Place& place) {
  return without_members(folded_view(output, place, 1, l.device()));
}

/// y = gates * x, and zeros in rows of no member: a routed_linear without inputs, whose residual is
/// x. Its x and weight have no elements.
void lower_gates(Lowering& l, const std::string& output, const Place& from, const Place& to) {
  const PlacedView x = rows_view_of(l, output, from), y = rows_view_of(l, output, to),
                   none = x.as({x.view.shape[0], 0}),
                   weight = x.as({l.num_members(), x.view.shape[1], 0}), gates = l.gates_of_routing,
                   first_rows = l.first_rows_of_routing, order = l.order_of_routing;
  const auto arguments = [=](const Bases& at) {
    return RoutedLinearArguments{.x = at.at(none),
                                 .weight = at.at(weight),
                                 .y = at.at(y),
                                 .residual = at.at(x),
                                 .gates = at.at(gates),
                                 .first_rows = at.at(first_rows),
                                 .order = at.at(order)};
  };
  RoutedLinearProblem like;
  like.allow_tf32 = l.options().allows_tf32;
  like.gathers = like.scatters = true;
  like.epilogue.residual = Residual::before_activation;
  PlanOptions options = l.plan_options("routed_linear", "routed_linear");
  if (options.strategy == "weight_only") options.strategy = kAuto;  // of quantised layers alone
  const RoutedLinearPlan plan = make_routed_linear_plan(
      l.context(), describe_routed_linear(arguments(l.example()), like), options);
  l.add_planned(output, "routed_linear", plan, arguments);
}

void lower_sum(Lowering& l, const std::string& output, const Place& from, const Place& to) {
  const PlacedView x = folded_view(output, choices_apart(from, l.problem().choices), 1, l.device()),
                   y = rows_view_of(l, output, to);
  const auto arguments = [=](const Bases& at) {
    return EnsembleArguments{.x = at.at(x), .y = at.at(y)};
  };
  EnsembleProblem like;
  like.num_members = l.problem().choices;
  like.function = EnsembleFunction::sum;
  const EnsemblePlan plan =
      make_ensemble_plan(l.context(), describe_ensemble(arguments(l.example()), like),
                         l.plan_options("ensemble", "ensemble"));
  l.add_planned(output, "ensemble", plan, arguments);
}

}  // namespace

int64_t rows_of_choices(const ModelProblem& problem) {
  return problem.batch * problem.choices;
}

int64_t scores_of(const ModelProblem& problem) {
  return problem.num_scores == 0 ? problem.first_id + problem.num_members : problem.num_scores;
}

bool is_mixture(const ModelProblem& problem) {
  return problem.choices > 1 || problem.router != Router::ids;
}

std::vector<bool> values_of_choices(const ModelProblem& problem, const Graph& graph,
                                    const std::vector<bool>& is_shared) {
  std::vector<bool> has_choices(is_shared.size(), false);
  if (!problem.is_routed) return has_choices;
  for (const Node& node : graph.nodes()) {
    const bool has = std::any_of(node.operands.begin(), node.operands.end(), [&](const Operand& o) {
      const auto index = static_cast<size_t>(o.value.index);
      return is_batched(graph, o.value) ? has_choices[index] : !is_shared[index];
    });
    for (const Value y : node.outputs) {
      has_choices[static_cast<size_t>(y.index)] = has && is_batched(graph, y);
    }
  }
  return has_choices;
}

void lower_routing(Lowering& l) {
  const PlacedView ids = ids_of(l);
  l.first_rows_of_routing = l.add_activation(Dtype::int32, {l.num_members() + 1});
  l.order_of_routing = l.add_activation(Dtype::int32, {rows_of_choices(l.problem())});
  l.ids_of_routing = ids;
  const PlacedView first_rows = l.first_rows_of_routing, order = l.order_of_routing;
  const auto arguments = [=](const Bases& at) {
    return RoutingArguments{
        .ids = at.at(ids), .first_rows = at.at(first_rows), .order = at.at(order)};
  };
  const RoutingPlan plan = make_routing_plan(
      l.context(), describe_routing(arguments(l.example()), {.first_id = l.problem().first_id}),
      l.plan_options("routing", "routing"));
  l.add_planned("routing", "routing", plan, arguments);
}

Place choices_apart(Place place, int64_t choices) {
  place.num_members = choices;
  place.member_stride = place.strides[0];
  place.shape[0] /= choices;
  place.strides[0] *= choices;
  return place;
}

void lower_combination(Lowering& l, const OutputCopy& output) {
  const bool has_sum = l.problem().choices > 1;
  if (!has_sum && !output.lacks_gates) {
    return l.add_copy(output.name, stacked_view(output.from, l.device()),
                      stacked_view(output.to, l.device()), l.num_members());
  }
  Place from = in_dense_rows(l, output.name, output.from);
  if (output.lacks_gates) {
    Place gated = has_sum ? packed_place(from.dtype, from.shape, 1, -1) : output.to;
    if (has_sum) gated.storage = l.add_activation(gated.dtype, gated.shape).storage;
    lower_gates(l, output.name, from, gated);
    from = gated;
  }
  if (has_sum) lower_sum(l, output.name, from, output.to);
}

}  // namespace wide
