// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm's verbs: validate, choose, launch.
#include "wide/layernorm.hpp"

#include <cmath>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/verified.hpp"
#include "host/norm/layernorm_run.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "layernorm";

void require_legal(const LayernormProblem& p) {
  const auto require = [](const char* name, int64_t value, int64_t least) {
    WIDE_REQUIRE(value >= least, "layernorm: " + std::string(name) + " is " +
                                     std::to_string(value) +
                                     ", expected >= " + std::to_string(least));
  };
  require("num_members", p.num_members, 1);
  require("rows", p.rows, 0);
  require("features", p.features, 0);
  WIDE_REQUIRE(
      p.dtype == Dtype::fp32 || p.dtype == Dtype::fp16 || p.dtype == Dtype::bf16,
      "layernorm: dtype is " + std::string(dtype_name(p.dtype)) + ", expected fp32, fp16 or bf16");
  WIDE_REQUIRE(
      p.epsilon >= 0 && std::isfinite(p.epsilon),
      "layernorm: epsilon is " + std::to_string(p.epsilon) + ", expected a finite number >= 0");
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

/// The member stride of gamma or beta [num_members, features].
int64_t parameter_stride(const char* name, const ConstTensorView& view, const LayernormProblem& p) {
  require_shape(kName, name, view, "[num_members, features]", {p.num_members, p.features});
  require_dtype(kName, name, view, p.dtype);
  WIDE_REQUIRE(p.features <= 1 || view.strides[1] == 1,
               "layernorm: " + std::string(name) + " has strides " + to_string(view.strides) +
                   ", expected a last stride of 1");
  return p.num_members <= 1 ? p.features : view.strides[0];
}

void require_same(const LayernormProblem& got, const LayernormProblem& expected) {
  if (got == expected) return;
  const auto require = [](const char* name, int64_t g, int64_t e) {
    WIDE_REQUIRE(g == e, "layernorm: the operands' " + std::string(name) + " is " +
                             std::to_string(g) + ", expected the plan's = " + std::to_string(e));
  };
  require("num_members", got.num_members, expected.num_members);
  require("rows", got.rows, expected.rows);
  require("features", got.features, expected.features);
  WIDE_REQUIRE(got.has_gamma == expected.has_gamma && got.has_beta == expected.has_beta,
               std::string("layernorm: ") +
                   (got.has_gamma != expected.has_gamma ? "gamma" : "beta") +
                   ((got.has_gamma != expected.has_gamma ? got.has_gamma : got.has_beta)
                        ? " is present, expected none"
                        : " is absent, expected one") +
                   " as in the plan's problem");
  WIDE_REQUIRE(got.dtype == expected.dtype,
               "layernorm: the operands are " + std::string(dtype_name(got.dtype)) +
                   ", expected the plan's = " + std::string(dtype_name(expected.dtype)));
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

struct LayernormPlan::State {
  Context context;
  LayernormProblem problem;
  LayernormChoice choice;
  std::string range;
};

LayernormPlan make_layernorm_plan(const Context& context, const LayernormProblem& problem,
                                  const PlanOptions& options) {
  const LayernormProblem full = resolved(problem);
  require_no_policy(kName, options.policy);
  const DeviceInfo& device = context.info();
  LayernormChoice choice = choose_layernorm_strategy(
      full, device, options.strategy, is_verified(kName, "wide", device.compute_capability));
  std::string range = "wide::layernorm(" + std::string(strategy_name(choice.strategy)) + ")";
  return LayernormPlan(std::make_shared<const LayernormPlan::State>(
      LayernormPlan::State{context, full, std::move(choice), std::move(range)}));
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
