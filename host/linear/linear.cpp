// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The plan of linear: fixes the strategy when it is made; a call only compares its arguments with
// the problem and starts the strategy.
#include "wide/linear.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/linear/linear_cublaslt.hpp"
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/linear_weight.hpp"

namespace wide {

template <>
struct PlanState<LinearProblem> : PlanFacts<LinearProblem, LinearChoice> {
  LinearTiles tiles;
  std::shared_ptr<const CublasLtPlan> cublaslt;  ///< for that strategy only
  LinearWorkspace workspace;
};
template class PrimitivePlan<LinearProblem>;

namespace {

LinearChoice resolve_strategy(const LinearProblem& problem, const DeviceInfo& device,
                              const PlanOptions& options) {
  const std::string& name = options.strategy;
  WIDE_REQUIRE(!is_automatic(name) || options.policy.empty(),
               "linear: policy is \"" + options.policy + "\", expected none: strategy \"" + name +
                   "\" has its own");
  const auto strategy = parse_linear_strategy(name, device.device.type);
  const std::string policy_reason =
      strategy ? linear_policy_reason(*strategy, problem, options.policy) : "";
  WIDE_REQUIRE(!strategy || options.policy.empty() || is_linear_policy(*strategy, options.policy),
               "linear: " + policy_reason);
  LinearChoice choice = choose_linear_strategy(problem, device, verified_strategies(), name,
                                               tuning_of(options, "linear", problem));
  if (!policy_reason.empty()) throw_unsupported("linear: " + policy_reason);
  if (!is_automatic(name)) choice.policy = options.policy;
  return choice;
}

void require_weight_shape(const LinearProblem& problem, const ConstTensorView& weight) {
  require_shape("linear", "weight", weight, "[num_members, out, in]",
                {problem.num_members, problem.out_features, problem.in_features});
}

void require_plan_x(const LinearProblem& problem, const ConstTensorView& x) {
  const int64_t members = problem.shared_input ? 1 : problem.num_members;
  require_plan_dtype("linear", "x", x, problem.dtype);
  require_plan_rows("linear", "x", x, members * problem.in_features, "batch", problem.batch);
}

LinearWeights weights_of(const LinearProblem& problem) {
  return {"linear",      problem.num_members, linear_quantized_weight(problem),
          problem.dtype, *problem.y_dtype,    problem.epilogue.has_bias};
}

/// Whether a kernel of ours is launched for each member.
bool launches_members(LinearStrategy strategy, const LinearProblem& problem,
                      const DeviceInfo& device) {
  return strategy == LinearStrategy::sequential && device.device.type == DeviceType::cuda &&
         launches_linear_members(problem);
}

/// Names what run_linear_kernel() launches where an address has no tensor map; empty if the plan's
/// kernel needs none.
std::string stand_in_note(LinearStrategy strategy, const LinearProblem& problem,
                          const DeviceInfo& device, const LinearTiles& tiles) {
  const bool calls_cublas = strategy == LinearStrategy::sequential && !is_fp8(problem.dtype);
  if (calls_cublas || linear_kernel_of(strategy, problem, device) != LinearStrategy::wgmma)
    return "";
  const char* const of_mma = tile_m(tiles.mma) >= 64 ? "tensor_core" : "small_m";
  return std::string("; by ") + (is_fp8(problem.dtype) ? "simt" : of_mma) +
         " where x or weight is not aligned to 16 bytes";
}

}  // namespace

LinearPlan make_linear_plan(const Context& context, const LinearProblem& problem,
                            const PlanOptions& options) {
  const DeviceInfo& device = context.info();
  const LinearProblem full = complete_linear_problem(problem);
  LinearPlan::State state{
      {"linear", context, full, resolve_strategy(full, device, options)}, {}, nullptr, {}};
  LinearChoice& choice = state.choice;
  LinearProblem launched = full;
  LinearStrategy kernel = choice.strategy;
  if (launches_members(choice.strategy, full, device)) {
    launched.num_members = 1;
    kernel = linear_kernel_of(choice.strategy, full, device);
  }
  state.tiles = linear_tiles(kernel, launched, device, choice.policy);
  state.workspace = linear_workspace(choice.strategy, full, device);
  if (choice.strategy == LinearStrategy::cublaslt) {
    state.cublaslt = make_cublaslt_plan(context, full, choice.policy, options.search_algorithms);
    state.workspace = state.cublaslt->workspace();
    choice.policy = state.cublaslt->policy();
    choice.explain += "; " + state.cublaslt->explain();
  } else {
    choice.policy = linear_policy_name(choice.strategy, state.tiles);
    if (!choice.policy.empty()) choice.explain += "; policy " + choice.policy;
    if (choice.strategy == LinearStrategy::decoded) {
      choice.explain += "; multiplied by " + std::string(strategy_name(state.tiles.kernel));
    }
    choice.explain += stand_in_note(choice.strategy, full, device, state.tiles);
    state.workspace.sums_bytes += linear_planes_bytes(full, state.tiles);
    if (state.tiles.num_planes > 1) {
      choice.explain += "; k divided over " + std::to_string(state.tiles.num_planes) + " blocks";
    }
  }
  state.workspace_bytes = state.workspace.bytes();
  state.vendor_calls.cublas = state.workspace.cublas_bytes > 0;
  return LinearPlan(std::make_shared<const LinearPlan::State>(std::move(state)));
}

std::string_view LinearPlan::weight_format() const {
  return weight_format_name(state_->problem.weight_format);
}

void LinearPlan::prepare_weights(std::span<const LinearMember> members, const TensorView& weight,
                                 const TensorView& bias, Stream stream) const {
  prepare_linear_weights(state_->context, weights_of(state_->problem), members, weight, bias,
                         stream);
}

void LinearPlan::restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                                 std::span<const TensorView> member_weights,
                                 std::span<const TensorView> member_biases, Stream stream) const {
  restore_linear_weights(state_->context, weights_of(state_->problem), weight, bias, member_weights,
                         member_biases, stream);
}

void LinearPlan::run(const LinearArguments& arguments, const Execution& execution) const {
  const State& state = *state_;
  const LinearProblem& problem = state.problem;
  require_device("linear", "x", arguments.x, state.context.device());
  // First: in a description it is x that does not fit a weight of other features.
  if (!is_quantized(problem)) require_weight_shape(problem, arguments.weight);
  require_plan_x(problem, arguments.x);
  require_same_linear_problem(describe_linear(arguments, problem), problem);
  if (is_empty(problem)) return;
  require_workspace("linear", execution, state.workspace.bytes());

  const NvtxRange range(state.range.c_str());
  const DeviceInfo& device = state.context.info();
  const bool on_cpu = device.device.type == DeviceType::cpu;
  switch (state.choice.strategy) {
    case LinearStrategy::sequential:
      if (on_cpu) {
        return run_linear_cpu(state.context, problem, arguments, CpuOrder::member_after_member);
      }
      if (launches_members(state.choice.strategy, problem, device)) {
        return run_linear_members(device, state.tiles, problem, arguments, execution);
      }
      [[fallthrough]];
    case LinearStrategy::cublas_batched:
    case LinearStrategy::cublas_grouped:
      return run_linear_cublas(device, state.choice.strategy, state.workspace, problem, arguments,
                               execution);
    case LinearStrategy::cublaslt:
      return state.cublaslt->run(arguments, execution);
    case LinearStrategy::simt:
    case LinearStrategy::gemv:
    case LinearStrategy::small_m:
    case LinearStrategy::tensor_core:
    case LinearStrategy::wgmma:
    case LinearStrategy::tf32x3:
    case LinearStrategy::shared_input:
    case LinearStrategy::weight_only:
      return run_linear_kernel(device, state.choice.strategy, state.tiles, problem, arguments,
                               execution);
    case LinearStrategy::decoded:
      return run_linear_decoded(device, state.tiles, state.workspace.weight_bytes, problem,
                                arguments, execution);
    case LinearStrategy::wide:
      return run_linear_cpu(state.context, problem, arguments, CpuOrder::all_members);
  }
}

}  // namespace wide
