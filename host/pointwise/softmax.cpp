// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// softmax's verbs: validate, choose, launch.
#include "wide/softmax.hpp"

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/pointwise/packed_rows.hpp"
#include "host/pointwise/softmax_cudnn.hpp"
#include "host/pointwise/softmax_run.hpp"

namespace wide {

namespace {

constexpr std::string_view kSoftmaxName = "softmax";

SoftmaxProblem resolved(SoftmaxProblem p) {
  require_legal_rows(kSoftmaxName, rows_of(p));
  complete_rows(kSoftmaxName, p);
  return p;
}

constexpr auto kSoftmaxFields = [](const auto& same, const SoftmaxProblem& got,
                                   const SoftmaxProblem& plan) {
  same_rows(same, got, plan);
  same("is_log", got.is_log, plan.is_log);
};

}  // namespace

std::string problem_key(const SoftmaxProblem& complete) {
  return key_of_fields(complete, kSoftmaxFields);
}
TuningKey tuning_key(const SoftmaxProblem& problem) {
  return {std::string(kSoftmaxName), problem_key(resolved(problem))};
}

SoftmaxProblem describe_softmax(const SoftmaxArguments& a, const SoftmaxProblem& like) {
  const PackedRows rows =
      describe_packed_rows(kSoftmaxName, a.x, a.y, like.num_members, like.features);
  return {rows.num_members, rows.rows, rows.features, like.is_log, rows.dtype, rows.x, rows.y};
}

template <>
struct PlanState<SoftmaxProblem> : CudnnWideState<SoftmaxProblem, SoftmaxCudnn> {};
template class PrimitivePlan<SoftmaxProblem>;

SoftmaxPlan make_softmax_plan(const Context& context, const SoftmaxProblem& problem,
                              const PlanOptions& options) {
  const SoftmaxProblem full = resolved(problem);
  const CudnnWideParts parts{full.rows == 0 || full.features == 0,
                             is_wide_verified(kSoftmaxName, context), row_launches(full), "y is x"};
  return SoftmaxPlan(std::make_shared<const SoftmaxPlan::State>(
      make_cudnn_wide_state<SoftmaxCudnn>(kSoftmaxName, context, full, options, parts)));
}

void SoftmaxPlan::run(const SoftmaxArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kSoftmaxName, "y", arguments.y, s.context.device());
  require_same_problem(kSoftmaxName, describe_softmax(arguments, s.problem), s.problem,
                       kSoftmaxFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    return run_softmax_cpu(s.context, s.problem, s.choice.strategy, arguments);
  }
  if (s.has_run(kSoftmaxName, softmax_cudnn_unsupported_reason, arguments, execution)) return;
  run_softmax_cuda(s.context, s.problem, s.own_strategy(), arguments, execution.stream);
}

}  // namespace wide
