// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members is read off the weights, the rows off the routing,
// widths are `like`'s; the others must fit.
#include "host/core/plan_checks.hpp"
#include "host/fused/mlp_weights.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/linear/routed_rows.hpp"

namespace wide {

namespace {

/// The part of a problem that operands show.
struct RoutedMlpOperands {
  MlpWeights weights;
  RoutedRows rows;
  friend bool operator==(const RoutedMlpOperands&, const RoutedMlpOperands&) = default;
};

/// Of x's dtype, which is `like`'s, as `mlp` is its networks. Allocates nothing except for
/// messages.
RoutedMlpOperands read_operands(const RoutedMlpArguments& arguments, const RoutedMlpProblem& like,
                                const MlpProblem& mlp) {
  const ConstTensorView y = arguments.y;
  const MlpWeights weights = read_mlp_weights(kRoutedMlpName, arguments.weights, mlp);
  const RoutedRows rows = read_routed_rows(
      kRoutedMlpName, {arguments.x, y, arguments.gates, arguments.first_rows, arguments.order},
      {weights.num_members, like.widths.front(), like.widths.back(), like.dtype, like.gathers,
       like.scatters, like.choices});
  require_device(kRoutedMlpName, "y", y, arguments.x.device);
  for (const auto& [name, input] : {std::pair{"x", &arguments.x},
                                    {"weights", &arguments.weights},
                                    {"gates", &arguments.gates},
                                    {"first_rows", &arguments.first_rows},
                                    {"order", &arguments.order}}) {
    require_apart(kRoutedMlpName, name, *input, y);
  }
  return {weights, rows};
}

}  // namespace

RoutedMlpProblem describe_routed_mlp(const RoutedMlpArguments& arguments,
                                     const RoutedMlpProblem& like) {
  RoutedMlpProblem p = like;
  p.dtype = arguments.x.dtype;
  const RoutedMlpOperands operands = read_operands(arguments, p, mlp_of(p));
  p.num_members = operands.weights.num_members;
  p.weights_member_stride = operands.weights.member_stride;
  p.num_rows = operands.rows.num_rows;
  p.choices = operands.rows.choices;
  p.has_gates = operands.rows.has_gates;
  p.x_row_stride = operands.rows.x_row_stride;
  p.y_row_stride = operands.rows.y_row_stride;
  return complete_routed_mlp_problem(std::move(p));
}

void require_same_routed_mlp_operands(const RoutedMlpArguments& arguments,
                                      const RoutedMlpProblem& plan, const MlpProblem& mlp) {
  require_plan_routed_rows(kRoutedMlpName, arguments.x, arguments.order,
                           {.num_rows = plan.num_rows, .choices = plan.choices},
                           plan.widths.front(), plan.dtype);
  const RoutedMlpOperands expected{
      {plan.num_members, plan.weights_member_stride},
      {plan.num_rows, plan.choices, plan.has_gates, plan.x_row_stride, plan.y_row_stride}};
  if (read_operands(arguments, plan, mlp) == expected) return;
  require_same_routed_mlp_problem(describe_routed_mlp(arguments, plan), plan);
}

}  // namespace wide
