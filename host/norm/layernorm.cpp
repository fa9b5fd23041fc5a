// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm's verbs: validate, choose, launch.
#include "wide/layernorm.hpp"

#include "host/core/member_fields.hpp"
#include "host/core/plan_checks.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/norm/row_norm.hpp"
#include "host/norm/row_norm_cudnn.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kLayernormName = "layernorm";

}  // namespace

LayernormProblem describe_layernorm(const LayernormArguments& arguments,
                                    const LayernormProblem& like) {
  return to_layernorm(describe_rows(kLayernormName, to_chain(arguments), to_chain(like)));
}

template <>
struct PlanState<LayernormProblem> : CudnnWideState<LayernormProblem, RowNormCudnn> {};
template class PrimitivePlan<LayernormProblem>;

LayernormPlan make_layernorm_plan(const Context& context, const LayernormProblem& problem,
                                  const PlanOptions& options) {
  const LayernormProblem full = to_layernorm(complete_rows(kLayernormName, to_chain(problem)));
  return LayernormPlan(
      std::make_shared<const LayernormPlan::State>(make_cudnn_wide_state<RowNormCudnn>(
          kLayernormName, context, full, options,
          row_norm_cudnn_parts(kLayernormName, context, to_chain(full)))));
}

void LayernormPlan::prepare_weights(std::span<const LayernormMember> members,
                                    const TensorView& gamma, const TensorView& beta,
                                    Stream stream) const {
  const LayernormProblem& p = state_->problem;
  if (p.has_gamma) {
    require_shape(kLayernormName, "gamma", gamma, "[num_members, features]",
                  {p.num_members, p.features});
    pack(operands::layernorm_gamma, fields_of(members, &LayernormMember::gamma), gamma, stream);
  }
  if (p.has_beta) {
    require_shape(kLayernormName, "beta", beta, "[num_members, features]",
                  {p.num_members, p.features});
    pack(operands::layernorm_beta, fields_of(members, &LayernormMember::beta), beta, stream);
  }
}

void LayernormPlan::restore_weights(const ConstTensorView& gamma, const ConstTensorView& beta,
                                    std::span<const TensorView> member_gammas,
                                    std::span<const TensorView> member_betas, Stream stream) const {
  if (state_->problem.has_gamma) unpack(operands::layernorm_gamma, gamma, member_gammas, stream);
  if (state_->problem.has_beta) unpack(operands::layernorm_beta, beta, member_betas, stream);
}

void LayernormPlan::run(const LayernormArguments& arguments, const Execution& execution) const {
  run_rows_or_cudnn(kLayernormName, *state_, arguments, execution, workspace_bytes());
}

}  // namespace wide
