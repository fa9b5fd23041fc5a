// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The plan of routed_linear: fixes the strategy when it is made; a call compares its arguments with
// the problem and starts the strategy, nothing else.
#include "wide/routed_linear.hpp"

#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_run.hpp"
#include "wide/pack.hpp"

namespace wide {

struct RoutedLinearPlan::State {
  Context context;
  RoutedLinearProblem problem;
  RoutedLinearChoice choice;
  int64_t workspace_bytes;
  std::string range_name;  ///< "wide::routed_linear(simt)"
};

namespace {

void require_entries(const char* what, size_t got, int64_t expected) {
  WIDE_REQUIRE(static_cast<int64_t>(got) == expected,
               "routed_linear: " + std::string(what) + " has " + std::to_string(got) +
                   " entries, expected num_members = " + std::to_string(expected));
}

/// The packed side of prepare_weights and restore_weights.
void check_packed_weights(const RoutedLinearProblem& problem, const ConstTensorView& weight,
                          const ConstTensorView& bias) {
  require_dtype(kRoutedLinearName, "weight", weight, problem.dtype);
  require_shape(kRoutedLinearName, "weight", weight, "[num_members, out, in]",
                {problem.num_members, problem.out_features, problem.in_features});
  WIDE_REQUIRE(bias.is_absent() != problem.epilogue.has_bias,
               std::string("routed_linear: bias is ") +
                   (problem.epilogue.has_bias ? "absent, expected [num_members, out]"
                                              : "present, expected none: the problem has none"));
  if (!problem.epilogue.has_bias) return;
  require_dtype(kRoutedLinearName, "bias", bias, problem.dtype);
  require_shape(kRoutedLinearName, "bias", bias, "[num_members, out]",
                {problem.num_members, problem.out_features});
}

}  // namespace

RoutedLinearPlan make_routed_linear_plan(const Context& context, const RoutedLinearProblem& problem,
                                         const PlanOptions& options) {
  const RoutedLinearProblem complete = complete_routed_linear_problem(problem);
  require_no_policy(kRoutedLinearName, options.policy);
  RoutedLinearChoice choice = choose_routed_linear_strategy(
      complete, context.info(), verified_strategies(), options.strategy,
      tuning_of(options, kRoutedLinearName, complete));
  std::string range = "wide::routed_linear(" + std::string(strategy_name(choice.strategy)) + ")";
  return RoutedLinearPlan(std::make_shared<const RoutedLinearPlan::State>(RoutedLinearPlan::State{
      context, complete, std::move(choice), routed_linear_workspace_bytes(complete, context.info()),
      std::move(range)}));
}

const RoutedLinearProblem& RoutedLinearPlan::problem() const {
  return state_->problem;
}
std::string_view RoutedLinearPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string RoutedLinearPlan::explain() const {
  return state_->choice.explain;
}
int64_t RoutedLinearPlan::workspace_bytes() const {
  return state_->workspace_bytes;
}
std::string_view RoutedLinearPlan::weight_format() const {
  return "packed";
}

void RoutedLinearPlan::prepare_weights(std::span<const LinearMember> members,
                                       const TensorView& weight, const TensorView& bias,
                                       Stream stream) const {
  const RoutedLinearProblem& problem = state_->problem;
  require_entries("members", members.size(), problem.num_members);
  check_packed_weights(problem, weight, bias);
  std::vector<ConstTensorView> weights, biases;
  for (const LinearMember& member : members) {
    WIDE_REQUIRE(
        member.bias.is_absent() != problem.epilogue.has_bias,
        "routed_linear: bias of member " + std::to_string(weights.size()) + " is " +
            (problem.epilogue.has_bias ? "absent, expected [out]" : "present, expected none"));
    weights.push_back(member.weight);
    if (problem.epilogue.has_bias) biases.push_back(member.bias);
  }
  const NvtxRange range("wide::routed_linear::prepare_weights");
  pack(operands::linear_weight, weights, weight, stream);
  if (problem.epilogue.has_bias) pack(operands::linear_bias, biases, bias, stream);
}

void RoutedLinearPlan::restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                                       std::span<const TensorView> member_weights,
                                       std::span<const TensorView> member_biases,
                                       Stream stream) const {
  const RoutedLinearProblem& problem = state_->problem;
  check_packed_weights(problem, weight, bias);
  require_entries("member_weights", member_weights.size(), problem.num_members);
  if (problem.epilogue.has_bias) {
    require_entries("member_biases", member_biases.size(), problem.num_members);
  }
  const NvtxRange range("wide::routed_linear::restore_weights");
  unpack(operands::linear_weight, weight, member_weights, stream);
  if (problem.epilogue.has_bias) unpack(operands::linear_bias, bias, member_biases, stream);
}

void RoutedLinearPlan::run(const RoutedLinearArguments& arguments,
                           const Execution& execution) const {
  const State& state = *state_;
  const RoutedLinearProblem& problem = state.problem;
  require_device(kRoutedLinearName, "y", arguments.y, state.context.device());
  require_same_routed_linear_problem(describe_routed_linear(arguments, problem), problem);
  if (is_empty(problem)) return;
  require_workspace(kRoutedLinearName, execution, state.workspace_bytes);

  const NvtxRange range(state.range_name.c_str());
  if (state.context.device().type == DeviceType::cpu) {
    run_routed_linear_cpu(state.context, state.choice.strategy, problem, arguments, execution);
  } else {
    run_routed_linear_cuda(state.context.info(), state.choice.strategy, problem, arguments,
                           execution.stream);
  }
}

}  // namespace wide
