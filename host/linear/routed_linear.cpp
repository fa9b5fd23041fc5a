// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The plan of routed_linear: fixes the strategy when it is made; a call compares its arguments with
// the problem and starts the strategy, nothing else.
#include "wide/routed_linear.hpp"

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/linear/linear_weight.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_run.hpp"
#include "host/linear/routed_rows.hpp"

namespace wide {

template <>
struct PlanState<RoutedLinearProblem> : PlanFacts<RoutedLinearProblem, RoutedLinearChoice> {};
template class PrimitivePlan<RoutedLinearProblem>;

namespace {

LinearWeights weights_of(const RoutedLinearProblem& problem) {
  return {kRoutedLinearName, problem.num_members, linear_quantized_weight(problem),
          problem.dtype,     problem.dtype,       problem.epilogue.has_bias};
}

}  // namespace

RoutedLinearPlan make_routed_linear_plan(const Context& context, const RoutedLinearProblem& problem,
                                         const PlanOptions& options) {
  const RoutedLinearProblem complete = complete_routed_linear_problem(problem);
  require_no_policy(kRoutedLinearName, options.policy);
  RoutedLinearChoice choice = choose_routed_linear_strategy(
      complete, context.info(), verified_strategies(), options.strategy,
      tuning_of(options, kRoutedLinearName, complete));
  if (choice.strategy == RoutedLinearStrategy::wgmma) {
    choice.explain += "; tiles of ";
    choice.explain += tile_name(choose_routed_wgmma_tile(complete, context.info()));
    choice.explain += "; by tensor_core where x or weight is not aligned to 16 bytes";
  }
  return RoutedLinearPlan(std::make_shared<const RoutedLinearPlan::State>(
      RoutedLinearPlan::State{{kRoutedLinearName, context, complete, std::move(choice)}}));
}

std::string_view RoutedLinearPlan::weight_format() const {
  return weight_format_name(state_->problem.weight_format);
}

void RoutedLinearPlan::prepare_weights(std::span<const LinearMember> members,
                                       const TensorView& weight, const TensorView& bias,
                                       Stream stream) const {
  prepare_linear_weights(state_->context, weights_of(state_->problem), members, weight, bias,
                         stream);
}

void RoutedLinearPlan::restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                                       std::span<const TensorView> member_weights,
                                       std::span<const TensorView> member_biases,
                                       Stream stream) const {
  restore_linear_weights(state_->context, weights_of(state_->problem), weight, bias, member_weights,
                         member_biases, stream);
}

/// Those by which the others are measured.
static void require_plan_operands(const RoutedLinearArguments& a, const RoutedLinearProblem& p) {
  if (!is_quantized(p)) {
    require_plan_shape(kRoutedLinearName, "weight", a.weight, "[num_members, out, in]",
                       {p.num_members, p.out_features, p.in_features});
  }
  require_plan_routed_rows(kRoutedLinearName, a.x, a.order,
                           {.num_rows = p.num_rows, .choices = p.choices}, p.in_features, p.dtype);
}

void RoutedLinearPlan::run(const RoutedLinearArguments& arguments,
                           const Execution& execution) const {
  const State& state = *state_;
  const RoutedLinearProblem& problem = state.problem;
  require_device(kRoutedLinearName, "y", arguments.y, state.context.device());
  require_plan_operands(arguments, problem);
  require_same_routed_linear_problem(describe_routed_linear(arguments, problem), problem);
  if (is_empty(problem)) return;

  const NvtxRange range(state.range.c_str());
  if (state.context.device().type == DeviceType::cpu) {
    run_routed_linear_cpu(state.context, state.choice.strategy, problem, arguments);
  } else {
    run_routed_linear_cuda(state.context.info(), state.choice.strategy, problem, arguments,
                           execution.stream);
  }
}

}  // namespace wide
