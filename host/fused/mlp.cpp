// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp's verbs. Fused, a call is one launch; else the plan consists of the layers' plans, to which a
// call passes views of the operands and of two places in the workspace, for all members at once or
// for one after another.
#include "wide/mlp.hpp"

#include <algorithm>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_run.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

template <class View>
using ByteOf = std::conditional_t<std::is_same_v<View, TensorView>, char, const char>;

/// `count` members from `first` on of rows with these strides, members explicit; an x that is one
/// for all members is returned unchanged.
template <class View>
View rows_of(const View& operand, const LinearProblem& layer, const RowStrides& strides,
             int64_t features, int64_t first, bool is_shared) {
  void* const data = const_cast<char*>(static_cast<const char*>(operand.data)) +
                     first * strides.member * dtype_bytes(operand.dtype);
  if (is_shared)
    return View(data, operand.dtype, {layer.batch, features}, Strides{strides.row, 1},
                operand.device);
  return View(data, operand.dtype, {layer.batch, layer.num_members, features},
              Strides{strides.row, strides.member, 1}, operand.device);
}

/// A layer's weight and bias, as views of the weights of `count` members from `first` on.
template <class View>
BasicMlpLayer<View> layer_of(const View& weights, const MlpProblem& p, const MlpLayerPlace& place,
                             size_t layer, int64_t first, int64_t count) {
  const int64_t in = p.widths[layer], out = p.widths[layer + 1];
  const int64_t stride = p.num_members == 1 ? p.weights_member_stride : weights.strides[0];
  const auto at = [&](int64_t element) {
    return static_cast<ByteOf<View>*>(weights.data) +
           (first * stride + element) * dtype_bytes(weights.dtype);
  };
  BasicMlpLayer<View> views;
  views.weight = View(at(place.weight), weights.dtype, {count, out, in},
                      Strides{stride, place.row, 1}, weights.device);
  if (p.has_bias) {
    views.bias =
        View(at(place.bias), weights.dtype, {count, out}, Strides{stride, 1}, weights.device);
  }
  return views;
}

void require_weights(const MlpProblem& p, const ConstTensorView& weights) {
  require_dtype(kMlpName, "weights", weights, p.dtype);
  require_shape(kMlpName, "weights", weights,
                "[num_members, elements] of widths " + mlp_widths_text(p),
                {p.num_members, mlp_member_elements(p)});
  WIDE_REQUIRE(weights.strides[1] == 1, "mlp: weights has strides " + to_string(weights.strides) +
                                            ", expected the last axis contiguous: stride 1");
}

template <class View>
void require_members(const MlpProblem& p, std::span<const BasicMlpMember<View>> members) {
  WIDE_REQUIRE(static_cast<int64_t>(members.size()) == p.num_members,
               "mlp: members has " + std::to_string(members.size()) +
                   " entries, expected num_members = " + std::to_string(p.num_members));
  for (size_t n = 0; n < members.size(); ++n) {
    const std::string whose = " of member " + std::to_string(n);
    const auto& layers = members[n].layers;
    WIDE_REQUIRE(layers.size() + 1 == p.widths.size(),
                 "mlp: layers" + whose + " has " + std::to_string(layers.size()) +
                     " entries, expected " + std::to_string(p.widths.size() - 1) + ": widths is " +
                     mlp_widths_text(p));
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::string layer = " of layer " + std::to_string(l) + whose;
      const int64_t in = p.widths[l], out = p.widths[l + 1];
      require_shape(kMlpName, "weight" + layer, layers[l].weight, "[out, in]", {out, in});
      WIDE_REQUIRE(layers[l].bias.is_absent() != p.has_bias,
                   "mlp: bias" + layer +
                       (p.has_bias ? " is absent, expected [out]: the plan's problem has one"
                                   : " is present, expected none: the plan's problem has none"));
      if (p.has_bias) require_shape(kMlpName, "bias" + layer, layers[l].bias, "[out]", {out});
    }
  }
}

}  // namespace

struct MlpPlan::State {
  Context context;
  MlpProblem problem;
  MlpChoice choice;
  std::vector<MlpLayerPlace> places;
  kernels::MlpFusedNet net{};      ///< for fused only
  kernels::MlpFusedShape shape{};  ///< for fused only
  int64_t members_at_once = 1;
  std::vector<LinearPlan> layers{};  ///< none where they are fused
  int64_t slot_bytes = 0;            ///< of each of the two places between layers
  int64_t workspace_bytes = 0;
  std::string explain{}, range{};
  VendorCalls calls{};

  void run(const MlpArguments& a, const Execution& execution, int64_t first) const;
};

MlpPlan make_mlp_plan(const Context& context, const MlpProblem& problem,
                      const PlanOptions& options) {
  const MlpProblem full = complete_mlp_problem(problem);
  require_no_policy(kMlpName, options.policy);
  const DeviceInfo& device = context.info();
  MlpPlan::State s{context, full,
                   choose_mlp_strategy(full, device, options.strategy, verified_strategies(),
                                       tuning_of(options, kMlpName, full)),
                   mlp_layer_places(full)};
  const MlpStrategy strategy = s.choice.strategy;
  s.explain = s.choice.explain;
  s.range = "wide::mlp(" + std::string(strategy_name(strategy)) + ")";
  if (strategy == MlpStrategy::fused) {
    s.net = mlp_fused_net(full);
    s.shape = choose_mlp_fused_shape(full, device);
    s.explain += s.shape.slots == 0 ? "; weights stay in shared memory"
                                    : "; weights are streamed through " +
                                          std::to_string(s.shape.slots) + " slots of shared memory";
    return MlpPlan(std::make_shared<const MlpPlan::State>(std::move(s)));
  }
  s.members_at_once = strategy == MlpStrategy::sequential ? 1 : full.num_members;
  s.explain += "; linear by";
  int64_t widest = 0, of_layer = 0;
  for (const LinearProblem& layer : mlp_layers(full, s.members_at_once)) {
    const std::string name = mlp_layer_strategy(strategy, layer, device);
    s.explain += " " + name;
    if (!s.layers.empty()) widest = std::max(widest, layer.in_features);
    s.layers.push_back(make_linear_plan(context, layer, {.strategy = name}));
    of_layer = std::max(of_layer, s.layers.back().workspace_bytes());
    if (!is_empty(full)) s.calls |= s.layers.back().vendor_calls();
  }
  s.slot_bytes = aligned_bytes(
      checked_bytes({full.batch, s.members_at_once, widest}, dtype_bytes(full.dtype)));
  s.workspace_bytes =
      is_empty(full) ? 0 : behind_part(behind_part(s.slot_bytes, s.slot_bytes), of_layer);
  return MlpPlan(std::make_shared<const MlpPlan::State>(std::move(s)));
}

const MlpProblem& MlpPlan::problem() const {
  return state_->problem;
}
std::string_view MlpPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string MlpPlan::explain() const {
  return state_->explain;
}
int64_t MlpPlan::workspace_bytes() const {
  return state_->workspace_bytes;
}
VendorCalls MlpPlan::vendor_calls() const {
  return state_->calls;
}
std::string_view MlpPlan::weight_format() const {
  return "packed";
}

void MlpPlan::prepare_weights(std::span<const MlpMember> members, const TensorView& weights,
                              Stream stream) const {
  const State& s = *state_;
  require_weights(s.problem, weights);
  require_members(s.problem, members);
  const NvtxRange range("wide::mlp::prepare_weights");
  fill_bytes(weights, 0, stream);  // except between members, which is not ours
  std::vector<ConstTensorView> own(members.size());
  const auto pack_each = [&](const PackedOperand& operand, size_t layer, auto field,
                             const TensorView& packed) {
    for (size_t n = 0; n < members.size(); ++n) own[n] = members[n].layers[layer].*field;
    pack(operand, own, packed, stream);
  };
  using Layer = BasicMlpLayer<ConstTensorView>;
  for (size_t l = 0; l < s.places.size(); ++l) {
    const auto views = layer_of(weights, s.problem, s.places[l], l, 0, s.problem.num_members);
    pack_each(operands::linear_weight, l, &Layer::weight, views.weight);
    if (s.problem.has_bias) pack_each(operands::linear_bias, l, &Layer::bias, views.bias);
  }
}

void MlpPlan::restore_weights(const ConstTensorView& weights,
                              std::span<const BasicMlpMember<TensorView>> members,
                              Stream stream) const {
  const State& s = *state_;
  require_weights(s.problem, weights);
  require_members(s.problem, members);
  const NvtxRange range("wide::mlp::restore_weights");
  std::vector<TensorView> own(members.size());
  const auto unpack_each = [&](const PackedOperand& operand, size_t layer, auto field,
                               const ConstTensorView& packed) {
    for (size_t n = 0; n < members.size(); ++n) own[n] = members[n].layers[layer].*field;
    unpack(operand, packed, own, stream);
  };
  using Layer = BasicMlpLayer<TensorView>;
  for (size_t l = 0; l < s.places.size(); ++l) {
    const auto views = layer_of(weights, s.problem, s.places[l], l, 0, s.problem.num_members);
    unpack_each(operands::linear_weight, l, &Layer::weight, views.weight);
    if (s.problem.has_bias) unpack_each(operands::linear_bias, l, &Layer::bias, views.bias);
  }
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
    const auto views = layer_of(a.weights, problem, places[l], l, first, members_at_once);
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
  require_handles(kMlpName, execution, s.calls, s.context.device());
  const NvtxRange range(s.range.c_str());
  if (s.choice.strategy == MlpStrategy::fused) {
    return run_mlp_fused(s.context.info(), s.problem, s.net, s.shape, arguments, execution.stream);
  }
  for (int64_t first = 0; first < s.problem.num_members; first += s.members_at_once) {
    s.run(arguments, execution, first);
  }
}

}  // namespace wide
