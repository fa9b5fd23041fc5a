// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ensemble's verbs: validate, choose, launch.
#include "wide/ensemble.hpp"

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/core/wide_plan.hpp"
#include "host/core/workspace.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "host/pointwise/packed_rows.hpp"
#include "kernels/pointwise/ensemble_blocks.hpp"

namespace wide {

static std::string text(EnsembleFunction function) {
  return text(ensemble_function_name(function));
}

namespace {

constexpr std::string_view kEnsembleName = "ensemble";

/// y's rows stand alone: [rows, 1, features].
PackedRows rows_of_x(const EnsembleProblem& p) {
  return {p.num_members, p.rows, p.features, p.dtype, p.x, {p.y_row_stride, p.features}};
}

EnsembleProblem resolved(EnsembleProblem p) {
  require_legal_rows(kEnsembleName, rows_of_x(p));
  require_enumerator(kEnsembleName, "function", p.function, kAllEnsembleFunctions.back());
  p.x = complete_strides(name_of(kEnsembleName, "x"), p.x, packed_rows(p.num_members, p.features),
                         p.rows, p.num_members, p.features);
  p.y_row_stride =
      complete_stride(name_of(kEnsembleName, "y_row_stride"), p.y_row_stride, p.rows, p.features);
  return p;
}

void check_mask(const EnsembleArguments& a, int64_t num_members) {
  require_shape(kEnsembleName, "mask", a.mask, "[num_members]", {num_members});
  require_dtype(kEnsembleName, "mask", a.mask, Dtype::uint8);
  require_device(kEnsembleName, "mask", a.mask, a.y.device);
  WIDE_REQUIRE(a.mask.is_contiguous(), "ensemble: mask has strides " + to_string(a.mask.strides) +
                                           ", expected members side by side: stride 1");
  require_own_memory(kEnsembleName, "y", a.y, "mask", a.mask);
}

constexpr auto kEnsembleFields = [](const auto& same, const EnsembleProblem& got,
                                    const EnsembleProblem& plan) {
  same_rows(same, rows_of_x(got), rows_of_x(plan));
  same.presence("mask", got.has_mask, plan.has_mask);
  same("function", got.function, plan.function);
};

}  // namespace

std::string problem_key(const EnsembleProblem& complete) {
  return key_of_fields(complete, kEnsembleFields);
}
TuningKey tuning_key(const EnsembleProblem& problem) {
  return {std::string(kEnsembleName), problem_key(resolved(problem))};
}

EnsembleProblem describe_ensemble(const EnsembleArguments& a, const EnsembleProblem& like) {
  const int64_t n = like.num_members;
  require_at_least(kEnsembleName, "num_members", n, 1);
  WIDE_REQUIRE(a.y.rank() >= 1,
               "ensemble: y is " + to_string(a.y.shape) + ", expected [.., features]");
  EnsembleProblem p;
  p.num_members = n;
  p.features = a.y.shape.back();
  p.function = like.function;
  p.dtype = a.x.dtype;
  const MemberRows from = member_rows(kEnsembleName, "x", a.x, n, p.features);
  p.rows = from.rows;
  p.x = from.strides;
  require_legal_rows(kEnsembleName, rows_of_x(p));
  const MemberRows to = shared_rows(kEnsembleName, "y", a.y, p.features);
  WIDE_REQUIRE(to.rows == p.rows, "ensemble: y is " + to_string(a.y.shape) +
                                      ", expected the rows of x = " + to_string(a.x.shape));
  require_disjoint_rows(kEnsembleName, "y", to, 1, p.features);
  p.y_row_stride = to.strides.row;
  require_dtype(kEnsembleName, "y", a.y, p.dtype);
  require_device(kEnsembleName, "x", a.x, a.y.device);
  require_own_memory(kEnsembleName, "y", a.y, "x", a.x);
  p.has_mask = a.mask.rank() > 0;
  if (p.has_mask) check_mask(a, n);
  return p;
}

namespace {

/// As ensemble_kernel and the votes are launched, by `sequential` for one member at a time. For
/// short rows of many members ensemble_short_kernel may have more blocks, but fewer than a grid
/// holds unless x takes 4 TB.
LaunchRefusal launches_of(const EnsembleProblem& p) {
  return launch_refusal("blocks", p.num_members, [&](int64_t members) -> int64_t {
    const int64_t vector = 16 / dtype_bytes(p.dtype);
    if (p.rows == 0 || p.features == 0) return 0;
    return p.function == EnsembleFunction::vote
               ? kernels::vote_blocks(members, p.rows, p.features, vector)
               : kernels::ensemble_blocks(p.rows, p.features, vector);
  });
}

}  // namespace

template <>
struct PlanState<EnsembleProblem> : WideState<EnsembleProblem> {};
template class PrimitivePlan<EnsembleProblem>;

EnsemblePlan make_ensemble_plan(const Context& context, const EnsembleProblem& problem,
                                const PlanOptions& options) {
  constexpr int64_t kMaxFeatures = 0x7fffffff;
  const EnsembleProblem full = resolved(problem);
  EnsemblePlan::State state{
      make_wide_state(kEnsembleName, context, full, options, launches_of(full))};
  if (full.function == EnsembleFunction::vote &&
      (full.num_members > kMaxVoters || full.features > kMaxFeatures)) {
    throw_unsupported("ensemble: vote of " + counted(full.num_members, "member") + " on " +
                      std::to_string(full.features) + " features, expected up to " +
                      std::to_string(kMaxVoters) + " and " + std::to_string(kMaxFeatures));
  }
  // What `sequential` keeps between members, and on the CPU the votes of every row.
  const bool is_cpu = context.device().type == DeviceType::cpu;
  if (state.choice.strategy == WideStrategy::sequential ||
      (is_cpu && full.function == EnsembleFunction::vote)) {
    state.workspace_bytes =
        aligned_bytes(checked_bytes({ensemble_parts(full.function), full.rows, full.features}, 4));
  }
  return EnsemblePlan(std::make_shared<const EnsemblePlan::State>(std::move(state)));
}

void EnsemblePlan::run(const EnsembleArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kEnsembleName, "y", arguments.y, s.context.device());
  require_same_problem(kEnsembleName, describe_ensemble(arguments, s.problem), s.problem,
                       kEnsembleFields);
  require_workspace(kEnsembleName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  void* state = execution.workspace.data;
  if (s.context.device().type == DeviceType::cpu) {
    run_ensemble_cpu(s.context, s.problem, s.choice.strategy, arguments, state);
  } else {
    run_ensemble_cuda(s.context, s.problem, s.choice.strategy, arguments, state, execution.stream);
  }
}

}  // namespace wide
