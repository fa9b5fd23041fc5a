// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm's verbs: validate, choose, launch.
#include "wide/layernorm.hpp"

#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/verified.hpp"
#include "host/norm/layernorm_run.hpp"
#include "host/norm/norm_plan.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "layernorm";

void require_legal(const LayernormProblem& p) {
  require_least(kName, "num_members", p.num_members, 1);
  require_least(kName, "rows", p.rows, 0);
  require_least(kName, "features", p.features, 0);
  require_norm_dtype(kName, p.dtype);
  require_epsilon(kName, p.epsilon);
  (void)checked_bytes({p.rows, p.num_members, p.features}, dtype_bytes(p.dtype));
}

LayernormProblem resolved(LayernormProblem p) {
  require_legal(p);
  if (p.x == RowStrides{}) p.x = packed_rows(p.num_members, p.features);
  if (p.y == RowStrides{}) p.y = packed_rows(p.num_members, p.features);
  p.gamma_member_stride = !p.has_gamma                 ? 0
                          : p.gamma_member_stride == 0 ? p.features
                                                       : p.gamma_member_stride;
  p.beta_member_stride = !p.has_beta                 ? 0
                         : p.beta_member_stride == 0 ? p.features
                                                     : p.beta_member_stride;
  return p;
}

int64_t parameter_stride(const char* name, const ConstTensorView& view, const LayernormProblem& p) {
  return parameter_stride(kName, name, view, "[num_members, features]", p.num_members, p.features,
                          p.dtype);
}

void require_same(const LayernormProblem& got, const LayernormProblem& expected) {
  if (got == expected) return;
  require_same_count(kName, "num_members", got.num_members, expected.num_members);
  require_same_count(kName, "rows", got.rows, expected.rows);
  require_same_count(kName, "features", got.features, expected.features);
  require_same_presence(kName, "gamma", got.has_gamma, expected.has_gamma);
  require_same_presence(kName, "beta", got.has_beta, expected.has_beta);
  require_same_dtype(kName, got.dtype, expected.dtype);
  throw_invalid_argument("layernorm: the strides of " +
                         std::string(got.x != expected.x   ? "x"
                                     : got.y != expected.y ? "y"
                                                           : "gamma or beta") +
                         " differ from the plan's problem");
}

}  // namespace

LayernormProblem describe_layernorm(const LayernormArguments& a, const LayernormProblem& like) {
  LayernormProblem p;
  p.epsilon = like.epsilon;
  p.has_gamma = !a.gamma.is_absent();
  p.has_beta = !a.beta.is_absent();
  p.dtype = a.x.dtype;
  p.num_members = like.num_members;
  const ConstTensorView& parameter = p.has_gamma ? a.gamma : a.beta;
  if (p.has_gamma || p.has_beta) {
    WIDE_REQUIRE(parameter.rank() == 2,
                 "layernorm: " + std::string(p.has_gamma ? "gamma" : "beta") + " is " +
                     to_string(parameter.shape) + ", expected [num_members, features]");
    p.num_members = parameter.shape[0];
    p.features = parameter.shape[1];
  } else {
    WIDE_REQUIRE(a.x.rank() >= 1 && p.num_members >= 1 && a.x.shape.back() % p.num_members == 0,
                 "layernorm: x is " + to_string(a.x.shape) +
                     ", expected [.., num_members * features] with num_members = " +
                     std::to_string(p.num_members));
    p.features = a.x.shape.back() / p.num_members;
  }
  const MemberRows x = member_rows(kName, "x", a.x, p.num_members, p.features);
  p.rows = x.rows;
  p.x = x.strides;
  require_legal(p);
  if (p.has_gamma) p.gamma_member_stride = parameter_stride("gamma", a.gamma, p);
  if (p.has_beta) p.beta_member_stride = parameter_stride("beta", a.beta, p);

  const MemberRows y = member_rows(kName, "y", a.y, p.num_members, p.features);
  WIDE_REQUIRE(y.rows == p.rows, "layernorm: y is " + to_string(a.y.shape) +
                                     ", expected the rows of x = " + to_string(a.x.shape));
  require_disjoint_rows(kName, "y", y, p.num_members, p.features);
  p.y = y.strides;
  require_dtype(kName, "y", a.y, p.dtype);
  require_device(kName, "x", a.x, a.y.device);
  if (p.has_gamma) require_device(kName, "gamma", a.gamma, a.y.device);
  if (p.has_beta) require_device(kName, "beta", a.beta, a.y.device);
  const bool is_in_place = a.x.data == a.y.data && p.x == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(a.x, a.y),
               "layernorm: y overlaps x, expected x itself or memory of its own");
  WIDE_REQUIRE(!may_overlap(a.gamma, a.y) && !may_overlap(a.beta, a.y),
               "layernorm: y overlaps gamma or beta");
  return p;
}

struct LayernormPlan::State : NormState<LayernormProblem> {};

LayernormPlan make_layernorm_plan(const Context& context, const LayernormProblem& problem,
                                  const PlanOptions& options) {
  const LayernormProblem full = resolved(problem);
  require_no_policy(kName, options.policy);
  const bool is_trusted = is_verified(kName, "wide", context.info().compute_capability);
  return LayernormPlan(std::make_shared<const LayernormPlan::State>(
      LayernormPlan::State{make_norm_state(kName, context, full, options, is_trusted)}));
}

const LayernormProblem& LayernormPlan::problem() const {
  return state_->problem;
}
std::string_view LayernormPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string LayernormPlan::explain() const {
  return state_->choice.explain;
}
int64_t LayernormPlan::workspace_bytes() const {
  return 0;
}
std::string_view LayernormPlan::weight_format() const {
  return "packed";
}

void LayernormPlan::prepare_weights(std::span<const LayernormMember> members,
                                    const TensorView& gamma, const TensorView& beta,
                                    Stream stream) const {
  const LayernormProblem& p = state_->problem;
  std::vector<ConstTensorView> gammas, betas;
  for (const LayernormMember& member : members) {
    gammas.push_back(member.gamma);
    betas.push_back(member.beta);
  }
  if (p.has_gamma) {
    require_shape(kName, "gamma", gamma, "[num_members, features]", {p.num_members, p.features});
    pack(operands::layernorm_gamma, gammas, gamma, stream);
  }
  if (p.has_beta) {
    require_shape(kName, "beta", beta, "[num_members, features]", {p.num_members, p.features});
    pack(operands::layernorm_beta, betas, beta, stream);
  }
}

void LayernormPlan::restore_weights(const ConstTensorView& gamma, const ConstTensorView& beta,
                                    std::span<const TensorView> member_gammas,
                                    std::span<const TensorView> member_betas, Stream stream) const {
  if (state_->problem.has_gamma) unpack(operands::layernorm_gamma, gamma, member_gammas, stream);
  if (state_->problem.has_beta) unpack(operands::layernorm_beta, beta, member_betas, stream);
}

void LayernormPlan::run(const LayernormArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kName, "y", arguments.y, s.context.device());
  require_same(describe_layernorm(arguments, s.problem), s.problem);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_layernorm_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_layernorm_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
