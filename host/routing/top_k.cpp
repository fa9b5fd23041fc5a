// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// top_k's verbs: validate, choose, launch.
#include "wide/top_k.hpp"

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/wide_plan.hpp"
#include "host/core/workspace.hpp"
#include "host/routing/top_k_run.hpp"
#include "kernels/routing/top_k_blocks.hpp"

namespace wide {

static std::string text(GateFunction function) {
  return text(gate_function_name(function));
}

namespace {

constexpr std::string_view kTopKName = "top_k";

void require_legal(const TopKProblem& p) {
  require_at_least(kTopKName, "num_members", p.num_members, 1);
  WIDE_REQUIRE(
      p.num_members <= INT32_MAX,
      "top_k: num_members is " + std::to_string(p.num_members) + ", expected up to 2^31 - 1");
  require_at_least(kTopKName, "rows", p.rows, 0);
  WIDE_REQUIRE(p.choices >= 1 && p.choices <= p.num_members,
               "top_k: choices is " + std::to_string(p.choices) +
                   ", expected from 1 to num_members = " + std::to_string(p.num_members));
  require_float_dtype(kTopKName, p.dtype);
  WIDE_REQUIRE(
      p.id_dtype == Dtype::int32 || p.id_dtype == Dtype::int64,
      "top_k: id_dtype is " + std::string(dtype_name(p.id_dtype)) + ", expected int32 or int64");
  require_enumerator(kTopKName, "gate", p.gate, kAllGateFunctions.back());
  (void)checked_bytes({p.rows, p.num_members}, 8);
}

TopKProblem resolved(TopKProblem p) {
  require_legal(p);
  p.scores_row_stride = complete_stride(name_of(kTopKName, "scores_row_stride"),
                                        p.scores_row_stride, p.rows, p.num_members);
  return p;
}

void require_dense(std::string_view argument, const TensorView& view) {
  WIDE_REQUIRE(view.is_contiguous(), name_of(kTopKName, argument) + " has strides " +
                                         to_string(view.strides) + ", expected contiguous ones");
}

void check_gates(const TopKArguments& a) {
  require_shape(kTopKName, "gates", a.gates, "that of ids", a.ids.shape);
  require_dtype(kTopKName, "gates", a.gates, Dtype::fp32);
  require_device(kTopKName, "gates", a.gates, a.ids.device);
  require_dense("gates", a.gates);
  require_own_memory(kTopKName, "gates", a.gates, "scores", a.scores);
  require_own_memory(kTopKName, "gates", a.gates, "ids", a.ids);
}

constexpr auto kTopKFields = [](const auto& same, const TopKProblem& got, const TopKProblem& plan) {
  same("rows", got.rows, plan.rows);
  same("num_members", got.num_members, plan.num_members);
  same("choices", got.choices, plan.choices);
  same("dtype", got.dtype, plan.dtype);
  same("id_dtype", got.id_dtype, plan.id_dtype);
  same("row stride of scores", got.scores_row_stride, plan.scores_row_stride);
  same.presence("gates", got.has_gates, plan.has_gates);
  same("gate", got.gate, plan.gate);
};

/// `sequential` has as many blocks in each of its launches.
LaunchRefusal launches_of(const TopKProblem& p) {
  return launch_refusal("blocks", p.num_members,
                        [&](int64_t) { return kernels::top_k_blocks(p.num_members, p.rows); });
}

}  // namespace

std::string problem_key(const TopKProblem& complete) {
  return key_of_fields(complete, kTopKFields);
}
TuningKey tuning_key(const TopKProblem& problem) {
  return {std::string(kTopKName), problem_key(resolved(problem))};
}

TopKProblem describe_top_k(const TopKArguments& a, const TopKProblem& like) {
  WIDE_REQUIRE(a.scores.rank() >= 1,
               "top_k: scores is " + to_string(a.scores.shape) + ", expected [.., num_members]");
  WIDE_REQUIRE(a.ids.rank() >= 1,
               "top_k: ids is " + to_string(a.ids.shape) + ", expected [.., choices]");
  TopKProblem p;
  p.num_members = a.scores.shape.back();
  p.choices = a.ids.shape.back();
  const MemberRows from = shared_rows(kTopKName, "scores", a.scores, p.num_members);
  const MemberRows to = shared_rows(kTopKName, "ids", a.ids, p.choices);
  p.rows = from.rows;
  p.scores_row_stride = from.strides.row;
  p.dtype = a.scores.dtype;
  p.id_dtype = a.ids.dtype;
  p.has_gates = a.gates.rank() > 0;
  p.gate = like.gate;
  require_legal(p);
  WIDE_REQUIRE(to.rows == p.rows,
               "top_k: ids is " + to_string(a.ids.shape) +
                   ", expected the rows of scores = " + to_string(a.scores.shape));
  require_device(kTopKName, "scores", a.scores, a.ids.device);
  require_dense("ids", a.ids);
  require_own_memory(kTopKName, "ids", a.ids, "scores", a.scores);
  if (p.has_gates) check_gates(a);
  return p;
}

template <>
struct PlanState<TopKProblem> : WideState<TopKProblem> {};
template class PrimitivePlan<TopKProblem>;

TopKPlan make_top_k_plan(const Context& context, const TopKProblem& problem,
                         const PlanOptions& options) {
  const TopKProblem full = resolved(problem);
  return TopKPlan(std::make_shared<const TopKPlan::State>(
      make_wide_state(kTopKName, context, full, options, launches_of(full))));
}

void TopKPlan::run(const TopKArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kTopKName, "ids", arguments.ids, s.context.device());
  const TopKProblem& p = s.problem;
  require_plan_dtype(kTopKName, "scores", arguments.scores, p.dtype);
  require_plan_extent(kTopKName, "scores", arguments.scores, -1, "num_members", p.num_members);
  require_plan_rows(kTopKName, "scores", arguments.scores, p.num_members, "rows", p.rows);
  require_same_problem(kTopKName, describe_top_k(arguments, s.problem), s.problem, kTopKFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_top_k_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_top_k_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
