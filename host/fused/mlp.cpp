// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp's verbs. Fused, a call is one launch; else the plan consists of the layers' plans, to which a
// call passes views of the operands and of two places in the workspace, for all members at once or
// for one after another.
#include "wide/mlp.hpp"

#include <algorithm>
#include <utility>

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/pointer.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_run.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "host/fused/mlp_weights.hpp"

namespace wide {

namespace {

/// As many members as the layer has, from `first` on, of rows with these strides, members explicit;
/// an x that is one for all members is returned unchanged.
template <class View>
View rows_of(const View& operand, const LinearProblem& layer, const RowStrides& strides,
             int64_t features, int64_t first, bool is_shared) {
  const auto data = advanced(operand.data, first * strides.member, dtype_bytes(operand.dtype));
  if (is_shared)
    return View(data, operand.dtype, {layer.batch, features}, Strides{strides.row, 1},
                operand.device);
  return View(data, operand.dtype, {layer.batch, layer.num_members, features},
              Strides{strides.row, strides.member, 1}, operand.device);
}

}  // namespace

template <>
struct PlanState<MlpProblem> : PlanFacts<MlpProblem, MlpChoice> {
  std::vector<MlpLayerPlace> places;
  kernels::MlpFusedNet net{};      ///< for fused only
  kernels::MlpFusedShape shape{};  ///< for fused only
  int64_t members_at_once = 1;
  std::vector<LinearPlan> layers{};  ///< none where they are fused
  int64_t slot_bytes = 0;            ///< of each of the two places between layers

  void run(const MlpArguments& a, const Execution& execution, int64_t first) const;
};
template class PrimitivePlan<MlpProblem>;

MlpPlan make_mlp_plan(const Context& context, const MlpProblem& problem,
                      const PlanOptions& options) {
  const MlpProblem full = complete_mlp_problem(problem);
  require_no_policy(kMlpName, options.policy);
  const DeviceInfo& device = context.info();
  MlpPlan::State s{{kMlpName, context, full,
                    choose_mlp_strategy(full, device, options.strategy, verified_strategies(),
                                        tuning_of(options, kMlpName, full))},
                   mlp_layer_places(full)};
  const MlpStrategy strategy = s.choice.strategy;
  std::string& explain = s.choice.explain;
  if (strategy == MlpStrategy::fused) {
    s.net = mlp_fused_net(full);
    s.shape = choose_mlp_fused_shape(full, device);
    explain += s.shape.slots == 0 ? "; weights stay in shared memory"
                                  : "; weights are streamed through " +
                                        std::to_string(s.shape.slots) + " slots of shared memory";
    return MlpPlan(std::make_shared<const MlpPlan::State>(std::move(s)));
  }
  s.members_at_once = strategy == MlpStrategy::sequential ? 1 : full.num_members;
  std::vector<std::string> names;
  int64_t widest = 0, of_layer = 0;
  for (const LinearProblem& layer : mlp_layers(full, s.members_at_once)) {
    const std::string name = mlp_layer_strategy(strategy, layer, device);
    names.push_back(name);
    if (!s.layers.empty()) widest = std::max(widest, layer.in_features);
    s.layers.push_back(make_linear_plan(context, layer, {.strategy = name}));
    of_layer = std::max(of_layer, s.layers.back().workspace_bytes());
    if (!is_empty(full)) s.vendor_calls |= s.layers.back().vendor_calls();
  }
  explain += "; linear by " + part_strategies_text(names);
  s.slot_bytes = aligned_bytes(
      checked_bytes({full.batch, s.members_at_once, widest}, dtype_bytes(full.dtype)));
  s.workspace_bytes =
      is_empty(full) ? 0 : behind_part(behind_part(s.slot_bytes, s.slot_bytes), of_layer);
  return MlpPlan(std::make_shared<const MlpPlan::State>(std::move(s)));
}

void MlpPlan::prepare_weights(std::span<const MlpMember> members, const TensorView& weights,
                              Stream stream) const {
  prepare_mlp_weights(kMlpName, state_->problem, members, weights, stream);
}

void MlpPlan::restore_weights(const ConstTensorView& weights,
                              std::span<const BasicMlpMember<TensorView>> members,
                              Stream stream) const {
  restore_mlp_weights(kMlpName, state_->problem, weights, members, stream);
}

/// The layers of members [first, first + members_at_once).
void MlpPlan::State::run(const MlpArguments& a, const Execution& execution, int64_t first) const {
  auto* const base = static_cast<char*>(execution.workspace.data);
  Execution of_layer = execution;
  of_layer.workspace = {base + 2 * slot_bytes, execution.workspace.bytes - 2 * slot_bytes};
  const auto slot = [&](size_t index, int64_t features) {
    return TensorView(base + static_cast<int64_t>(index % 2) * slot_bytes, problem.dtype,
                      {problem.batch, members_at_once, features}, context.device());
  };
  for (size_t l = 0; l < layers.size(); ++l) {
    const LinearProblem& layer = layers[l].problem();
    const auto views = mlp_layer_of(a.weights, problem, places[l], l, first, members_at_once);
    const bool is_last = l + 1 == layers.size();
    layers[l].run(
        {.x = l == 0 ? rows_of(a.x, layer, problem.x, layer.in_features, first, layer.shared_input)
                     : slot(l - 1, layer.in_features),
         .weight = views.weight,
         .bias = views.bias,
         .y = is_last ? rows_of(a.y, layer, problem.y, layer.out_features, first, false)
                      : slot(l, layer.out_features)},
        of_layer);
  }
}

void MlpPlan::run(const MlpArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kMlpName, "y", arguments.y, s.context.device());
  require_same_mlp_operands(arguments, s.problem);
  if (is_empty(s.problem)) return;
  require_workspace(kMlpName, execution, s.workspace_bytes);
  require_handles(kMlpName, execution, s.vendor_calls, s.context.device());
  const NvtxRange range(s.range.c_str());
  if (s.choice.strategy == MlpStrategy::fused) {
    return run_mlp_fused(s.context.info(), s.problem, s.net, s.shape, arguments, execution.stream);
  }
  for (int64_t first = 0; first < s.problem.num_members; first += s.members_at_once) {
    s.run(arguments, execution, first);
  }
}

}  // namespace wide
