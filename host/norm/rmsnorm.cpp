// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm's verbs, in layernorm's words where both do the same.
#include "wide/rmsnorm.hpp"

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/verified.hpp"
#include "host/norm/norm_plan.hpp"
#include "host/norm/row_norm.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "rmsnorm";

LayernormProblem to_rows(const RmsnormProblem& p) {
  return {
      p.num_members,         p.rows, p.features, p.dtype, p.epsilon, p.has_gamma, false, p.x, p.y,
      p.gamma_member_stride, 0};
}

RmsnormProblem from_rows(const LayernormProblem& p) {
  return {p.num_members, p.rows, p.features,           p.dtype, p.epsilon, p.has_gamma,
          p.x,           p.y,    p.gamma_member_stride};
}

LayernormArguments to_rows(const RmsnormArguments& a) {
  return {a.x, a.gamma, {}, a.y};
}

}  // namespace

RmsnormProblem describe_rmsnorm(const RmsnormArguments& arguments, const RmsnormProblem& like) {
  return from_rows(describe_row_norm(RowNorm::rmsnorm, to_rows(arguments), to_rows(like)));
}

struct RmsnormPlan::State : WideState<RmsnormProblem> {};

RmsnormPlan make_rmsnorm_plan(const Context& context, const RmsnormProblem& problem,
                              const PlanOptions& options) {
  const RmsnormProblem full = from_rows(complete_row_norm(RowNorm::rmsnorm, to_rows(problem)));
  require_no_policy(kName, options.policy);
  const bool is_trusted = is_verified(kName, "wide", context.info().compute_capability);
  return RmsnormPlan(std::make_shared<const RmsnormPlan::State>(
      RmsnormPlan::State{make_wide_state(kName, context, full, options, is_trusted)}));
}

const RmsnormProblem& RmsnormPlan::problem() const {
  return state_->problem;
}
std::string_view RmsnormPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string RmsnormPlan::explain() const {
  return state_->choice.explain;
}
int64_t RmsnormPlan::workspace_bytes() const {
  return 0;
}
std::string_view RmsnormPlan::weight_format() const {
  return "packed";
}

void RmsnormPlan::prepare_weights(std::span<const ConstTensorView> members, const TensorView& gamma,
                                  Stream stream) const {
  const RmsnormProblem& p = state_->problem;
  if (!p.has_gamma) return;
  require_shape(kName, "gamma", gamma, "[num_members, features]", {p.num_members, p.features});
  pack(operands::rmsnorm_gamma, members, gamma, stream);
}

void RmsnormPlan::restore_weights(const ConstTensorView& gamma, std::span<const TensorView> members,
                                  Stream stream) const {
  if (state_->problem.has_gamma) unpack(operands::rmsnorm_gamma, gamma, members, stream);
}

void RmsnormPlan::run(const RmsnormArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kName, "y", arguments.y, s.context.device());
  const LayernormProblem problem = to_rows(s.problem);
  require_same_row_norm(RowNorm::rmsnorm, to_rows(describe_rmsnorm(arguments, s.problem)), problem);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_row_norm_cpu(s.context, RowNorm::rmsnorm, problem, s.choice.strategy, to_rows(arguments));
  } else {
    run_row_norm_cuda(s.context, RowNorm::rmsnorm, problem, s.choice.strategy, to_rows(arguments),
                      execution.stream);
  }
}

}  // namespace wide
