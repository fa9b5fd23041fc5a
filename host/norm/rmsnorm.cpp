// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm's verbs: validate, choose, launch.
#include "wide/rmsnorm.hpp"

#include "host/core/plan_checks.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/norm/row_norm.hpp"
#include "host/norm/row_norm_cudnn.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kRmsnormName = "rmsnorm";

}  // namespace

RmsnormProblem describe_rmsnorm(const RmsnormArguments& arguments, const RmsnormProblem& like) {
  return to_rmsnorm(describe_rows(kRmsnormName, to_chain(arguments), to_chain(like)));
}

template <>
struct PlanState<RmsnormProblem> : CudnnWideState<RmsnormProblem, RowNormCudnn> {};
template class PrimitivePlan<RmsnormProblem>;

RmsnormPlan make_rmsnorm_plan(const Context& context, const RmsnormProblem& problem,
                              const PlanOptions& options) {
  const RmsnormProblem full = to_rmsnorm(complete_rows(kRmsnormName, to_chain(problem)));
  return RmsnormPlan(std::make_shared<const RmsnormPlan::State>(make_cudnn_wide_state<RowNormCudnn>(
      kRmsnormName, context, full, options,
      row_norm_cudnn_parts(kRmsnormName, context, to_chain(full)))));
}

void RmsnormPlan::prepare_weights(std::span<const ConstTensorView> members, const TensorView& gamma,
                                  Stream stream) const {
  const RmsnormProblem& p = state_->problem;
  if (!p.has_gamma) return;
  require_shape(kRmsnormName, "gamma", gamma, "[num_members, features]",
                {p.num_members, p.features});
  pack(operands::rmsnorm_gamma, members, gamma, stream);
}

void RmsnormPlan::restore_weights(const ConstTensorView& gamma, std::span<const TensorView> members,
                                  Stream stream) const {
  if (state_->problem.has_gamma) unpack(operands::rmsnorm_gamma, gamma, members, stream);
}

void RmsnormPlan::run(const RmsnormArguments& arguments, const Execution& execution) const {
  run_rows_or_cudnn(kRmsnormName, *state_, arguments, execution, workspace_bytes());
}

}  // namespace wide
