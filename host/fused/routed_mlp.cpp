// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_mlp's verbs. Fused, a call is one launch; else the plan consists of the layers' plans, to
// which a call passes views of the operands and of two places in the workspace.
#include "wide/routed_mlp.hpp"

#include <algorithm>
#include <utility>

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/text.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "host/fused/mlp_weights.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/fused/routed_mlp_run.hpp"

namespace wide {

template <>
struct PlanState<RoutedMlpProblem> : PlanFacts<RoutedMlpProblem, RoutedMlpChoice> {
  MlpProblem mlp;  ///< the networks, for their weights
  std::vector<MlpLayerPlace> places;
  kernels::MlpFusedNet net{};              ///< for fused only
  RoutedMlpShape shape{};                  ///< for fused only
  std::vector<RoutedLinearPlan> layers{};  ///< none where they are fused
  int64_t slot_bytes = 0;                  ///< of each of the two places between layers

  void run_layers(const RoutedMlpArguments& a, const Execution& execution) const;
};
template class PrimitivePlan<RoutedMlpProblem>;

RoutedMlpPlan make_routed_mlp_plan(const Context& context, const RoutedMlpProblem& problem,
                                   const PlanOptions& options) {
  const RoutedMlpProblem full = complete_routed_mlp_problem(problem);
  require_no_policy(kRoutedMlpName, options.policy);
  const DeviceInfo& device = context.info();
  RoutedMlpPlan::State s{
      {kRoutedMlpName, context, full,
       choose_routed_mlp_strategy(full, device, verified_strategies(), options.strategy,
                                  tuning_of(options, kRoutedMlpName, full))},
      mlp_of(full),
      mlp_layer_places(mlp_of(full))};
  const RoutedMlpStrategy strategy = s.choice.strategy;
  std::string& explain = s.choice.explain;
  if (strategy == RoutedMlpStrategy::fused) {
    s.net = mlp_fused_net(s.mlp);
    if (!is_empty(full)) s.shape = choose_routed_mlp_shape(full, device);
    explain += "; " + counted(s.shape.tile, "row") + " a block";
    return RoutedMlpPlan(std::make_shared<const RoutedMlpPlan::State>(std::move(s)));
  }
  std::vector<std::string> names;
  int64_t widest = 0, of_layer = 0;
  for (const RoutedLinearProblem& layer : routed_mlp_layers(full)) {
    const std::string name(routed_mlp_layer_strategy(strategy, layer, device));
    names.push_back(name);
    if (!s.layers.empty()) widest = std::max(widest, layer.in_features);
    s.layers.push_back(make_routed_linear_plan(context, layer, {.strategy = name}));
    of_layer = std::max(of_layer, s.layers.back().workspace_bytes());
  }
  explain += "; routed_linear by " + part_strategies_text(names);
  s.slot_bytes = aligned_bytes(checked_bytes({full.num_rows, widest}, dtype_bytes(full.dtype)));
  s.workspace_bytes =
      is_empty(full) ? 0 : behind_part(behind_part(s.slot_bytes, s.slot_bytes), of_layer);
  return RoutedMlpPlan(std::make_shared<const RoutedMlpPlan::State>(std::move(s)));
}

void RoutedMlpPlan::prepare_weights(std::span<const MlpMember> members, const TensorView& weights,
                                    Stream stream) const {
  prepare_mlp_weights(kRoutedMlpName, state_->mlp, members, weights, stream);
}

void RoutedMlpPlan::restore_weights(const ConstTensorView& weights,
                                    std::span<const BasicMlpMember<TensorView>> members,
                                    Stream stream) const {
  restore_mlp_weights(kRoutedMlpName, state_->mlp, weights, members, stream);
}

void RoutedMlpPlan::State::run_layers(const RoutedMlpArguments& a,
                                      const Execution& execution) const {
  auto* const base = static_cast<char*>(execution.workspace.data);
  Execution of_layer = execution;
  of_layer.workspace = {base + 2 * slot_bytes, execution.workspace.bytes - 2 * slot_bytes};
  const auto slot = [&](size_t index, int64_t features) {
    return TensorView(base + static_cast<int64_t>(index % 2) * slot_bytes, problem.dtype,
                      {problem.num_rows, features}, context.device());
  };
  for (size_t l = 0; l < layers.size(); ++l) {
    const RoutedLinearProblem& layer = layers[l].problem();
    const auto views = mlp_layer_of(a.weights, mlp, places[l], l, 0, problem.num_members);
    const bool is_last = l + 1 == layers.size();
    layers[l].run({.x = l == 0 ? a.x : slot(l - 1, layer.in_features),
                   .weight = views.weight,
                   .bias = views.bias,
                   .y = is_last ? a.y : slot(l, layer.out_features),
                   .gates = is_last ? a.gates : ConstTensorView(),
                   .first_rows = a.first_rows,
                   .order = a.order},
                  of_layer);
  }
}

void RoutedMlpPlan::run(const RoutedMlpArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kRoutedMlpName, "y", arguments.y, s.context.device());
  require_same_routed_mlp_operands(arguments, s.problem, s.mlp);
  if (is_empty(s.problem)) return;
  require_workspace(kRoutedMlpName, execution, s.workspace_bytes);
  const NvtxRange range(s.range.c_str());
  if (s.choice.strategy != RoutedMlpStrategy::fused) return s.run_layers(arguments, execution);
  run_routed_mlp_fused(s.context.info(), s.problem, s.net, s.shape, arguments, execution.stream);
}

}  // namespace wide
