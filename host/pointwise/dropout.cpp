// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// dropout's verbs: validate, choose, launch.
#include "wide/dropout.hpp"

#include "host/core/check.hpp"
#include "host/core/member_fields.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/wide_plan.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/packed_rows.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kDropoutName = "dropout";

DropoutProblem resolved(DropoutProblem p) {
  require_legal_rows(kDropoutName, rows_of(p));
  complete_rows(kDropoutName, p);
  p.seed_member_stride = complete_stride(name_of(kDropoutName, "seed_member_stride"),
                                         p.seed_member_stride, p.num_members, 2);
  p.probability_member_stride = complete_stride(name_of(kDropoutName, "probability_member_stride"),
                                                p.probability_member_stride, p.num_members, 1);
  return p;
}

/// The member stride of [num_members, count]; packed where there is one member.
int64_t describe_parameter(const char* argument, const ConstTensorView& view, const Shape& expected,
                           std::string_view axes, Dtype dtype, const TensorView& y) {
  require_shape(kDropoutName, argument, view, axes, expected);
  require_dtype(kDropoutName, argument, view, dtype);
  require_device(kDropoutName, argument, view, y.device);
  const int64_t stride = member_stride(kDropoutName, argument, view);
  require_own_memory(kDropoutName, "y", y, argument, view);
  return stride;
}

constexpr auto kDropoutFields = [](const auto& same, const DropoutProblem& got,
                                   const DropoutProblem& plan) {
  same_rows(same, got, plan);
  same("member stride of seeds", got.seed_member_stride, plan.seed_member_stride);
  same("member stride of probabilities", got.probability_member_stride,
       plan.probability_member_stride);
};

}  // namespace

std::string problem_key(const DropoutProblem& complete) {
  return key_of_fields(complete, kDropoutFields);
}
TuningKey tuning_key(const DropoutProblem& problem) {
  return {std::string(kDropoutName), problem_key(resolved(problem))};
}

DropoutProblem describe_dropout(const DropoutArguments& a, const DropoutProblem& like) {
  const PackedRows rows =
      describe_packed_rows(kDropoutName, a.x, a.y, like.num_members, like.features);
  DropoutProblem p{rows.num_members, rows.rows, rows.features, rows.dtype, rows.x, rows.y};
  p.seed_member_stride = describe_parameter("seeds", a.seeds, {p.num_members, 2},
                                            "[num_members, 2]", Dtype::int64, a.y);
  p.probability_member_stride = describe_parameter(
      "probabilities", a.probabilities, {p.num_members, 1}, "[num_members, 1]", Dtype::fp32, a.y);
  return p;
}

template <>
struct PlanState<DropoutProblem> : WideState<DropoutProblem> {};
template class PrimitivePlan<DropoutProblem>;

DropoutPlan make_dropout_plan(const Context& context, const DropoutProblem& problem,
                              const PlanOptions& options) {
  return DropoutPlan(std::make_shared<const DropoutPlan::State>(
      make_wide_state(kDropoutName, context, resolved(problem), options)));
}

void DropoutPlan::prepare_weights(std::span<const DropoutMember> members, const TensorView& seeds,
                                  const TensorView& probabilities, Stream stream) const {
  const int64_t num_members = state_->problem.num_members;
  require_shape(kDropoutName, "seeds", seeds, "[num_members, 2]", {num_members, 2});
  require_shape(kDropoutName, "probabilities", probabilities, "[num_members, 1]", {num_members, 1});
  pack(operands::dropout_seed, fields_of(members, &DropoutMember::seed), seeds, stream);
  pack(operands::dropout_probability, fields_of(members, &DropoutMember::probability),
       probabilities, stream);
}

void DropoutPlan::restore_weights(const ConstTensorView& seeds,
                                  const ConstTensorView& probabilities,
                                  std::span<const TensorView> member_seeds,
                                  std::span<const TensorView> member_probabilities,
                                  Stream stream) const {
  unpack(operands::dropout_seed, seeds, member_seeds, stream);
  unpack(operands::dropout_probability, probabilities, member_probabilities, stream);
}

void DropoutPlan::run(const DropoutArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kDropoutName, "y", arguments.y, s.context.device());
  require_same_problem(kDropoutName, describe_dropout(arguments, s.problem), s.problem,
                       kDropoutFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_dropout_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_dropout_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
