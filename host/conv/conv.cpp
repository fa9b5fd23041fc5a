// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's verbs: validate, choose, launch.
#include "wide/conv.hpp"

#include <utility>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"
#include "host/cudnn/cudnn_plan.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

/// A member's weight in the order of the layout: channels after the kernel's positions.
template <class View>
View in_order_of(const View& weight, ChannelLayout layout) {
  const int rank = weight.rank();
  WIDE_REQUIRE(rank >= 3 && rank <= 5,
               "conv: a member's weight is " + to_string(weight.shape) +
                   ", expected [out_channels, in_channels / groups, kd, kh, kw], or without kd, or "
                   "kd and kh");
  if (layout == ChannelLayout::channels_first) return weight;
  View view = weight;
  for (int axis = 1; axis < rank; ++axis) {
    const int from = axis == rank - 1 ? 1 : axis + 1;
    view.shape[axis] = weight.shape[from];
    view.strides[axis] = weight.strides[from];
  }
  return view;
}

const PackedOperand& packing_of(const ConstTensorView& weight) {
  return weight.rank() == 3   ? operands::conv1d_weight
         : weight.rank() == 4 ? operands::conv2d_weight
                              : operands::conv3d_weight;
}

/// Shared by prepare_weights and restore_weights: the packed side.
template <class View>
View packed_bias(const ConvProblem& p, const ConstTensorView& weight, const View& bias) {
  require_dtype(kConvName, "weight", weight, p.dtype);
  WIDE_REQUIRE(bias.is_absent() != p.epilogue.has_bias,
               std::string("conv: bias is ") +
                   (p.epilogue.has_bias ? "absent, expected [num_members * out_channels]"
                                        : "present, expected none: the problem has none"));
  if (!p.epilogue.has_bias) return bias;
  require_dtype(kConvName, "bias", bias, p.dtype);
  const ConstTensorView stacked =
      member_parameters(kConvName, "bias", bias, p.num_members, p.out_channels);
  View view = bias;
  view.shape = stacked.shape;
  view.strides = stacked.strides;
  return view;
}

}  // namespace

template <>
struct PlanState<ConvProblem> : PlanFacts<ConvProblem, ConvChoice> {
  // `problem` is the caller's; the runners' is without_idle_axes()
  ConvRunner runner;
  ConvRunner stand_in;  ///< runs what `runner` does not take, unless that was named
};
template class PrimitivePlan<ConvProblem>;

ConvPlan make_conv_plan(const Context& context, const ConvProblem& problem,
                        const PlanOptions& options) {
  const ConvProblem full = complete_conv_problem(problem);
  const ConvProblem computed = without_idle_axes(full);
  require_policy(kConvName, options, [&](std::string_view name, std::string_view policy) {
    const ConvStrategy* const strategy = find_conv_strategy(name, context.device().type);
    return strategy ? conv_policy_reason(*strategy, policy) : "";
  });
  ConvRunner runner, stand_in;
  ConvChoice choice = choose_conv_strategy(
      computed, context.info(), options.strategy, verified_strategies(),
      [&](const ConvStrategy& strategy, std::string_view policy) -> std::string {
        if (is_empty(full)) return "there is nothing to compute";
        const std::string refusal =
            cudnn_refusal([&] { runner = make_conv_runner(strategy, context, computed, policy); });
        if (!refusal.empty() || runner.calls_cudnn) return refusal;
        return std::exchange(runner, {}).note;
      },
      tuning_of(options, kConvName, full));
  if (!is_empty(full) && !runner.run) {
    runner = make_conv_runner(*choice.strategy, context, computed, options.policy);
  }
  choice.policy = runner.policy;
  if (!choice.policy.empty()) choice.explain += "; policy " + choice.policy;
  if (!runner.note.empty()) choice.explain += "; " + runner.note;
  const bool can_be_stood_in_for = runner.unsupported_reason && is_automatic(options.strategy) &&
                                   conv_direct_unsupported_reason(computed, context.info()).empty();
  if (can_be_stood_in_for) {
    const bool is_direct = conv_takes_direct(computed, context.info(), options.strategy);
    stand_in = (is_direct ? make_conv_direct : make_conv_cuda_sequential)(context, computed);
    choice.explain += "; where operands are not aligned to 16 bytes a launch " +
                      std::string(is_direct ? "" : "per member ") + "of our " +
                      conv_direct_text(computed, context.info());
  }
  ConvPlan::State state{
      {kConvName, context, full, std::move(choice)}, std::move(runner), std::move(stand_in)};
  state.workspace_bytes = aligned_bytes(state.runner.workspace_bytes);
  state.vendor_calls.cudnn = state.runner.calls_cudnn;
  return ConvPlan(std::make_shared<const ConvPlan::State>(std::move(state)));
}

std::string_view ConvPlan::weight_format() const {
  return conv_layout_name(state_->problem.layout);
}

void ConvPlan::prepare_weights(std::span<const ConvMember> members, const TensorView& weight,
                               const TensorView& bias, Stream stream) const {
  const ConvProblem& p = state_->problem;
  require_entries(kConvName, "members", members.size(), p.num_members);
  const TensorView to = packed_bias(p, weight, bias);
  std::vector<ConstTensorView> weights, biases;
  for (const ConvMember& member : members) {
    WIDE_REQUIRE(
        member.bias.is_absent() != p.epilogue.has_bias,
        "conv: bias of member " + std::to_string(weights.size()) + " is " +
            (p.epilogue.has_bias ? "absent, expected [out_channels]" : "present, expected none"));
    weights.push_back(in_order_of(member.weight, p.layout));
    if (p.epilogue.has_bias) biases.push_back(member.bias);
  }
  const NvtxRange range("wide::conv::prepare_weights");
  pack(packing_of(weights.front()), weights, weight, stream);
  if (p.epilogue.has_bias) pack(operands::channel_parameter, biases, to, stream);
}

void ConvPlan::restore_weights(const ConstTensorView& weight, const ConstTensorView& bias,
                               std::span<const TensorView> member_weights,
                               std::span<const TensorView> member_biases, Stream stream) const {
  const ConvProblem& p = state_->problem;
  require_entries(kConvName, "member_weights", member_weights.size(), p.num_members);
  if (p.epilogue.has_bias) {
    require_entries(kConvName, "member_biases", member_biases.size(), p.num_members);
  }
  const ConstTensorView from = packed_bias(p, weight, bias);
  std::vector<TensorView> weights;
  for (const TensorView& member : member_weights) weights.push_back(in_order_of(member, p.layout));
  const NvtxRange range("wide::conv::restore_weights");
  unpack(packing_of(weights.front()), weight, weights, stream);
  if (p.epilogue.has_bias) unpack(operands::channel_parameter, from, member_biases, stream);
}

void ConvPlan::run(const ConvArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kConvName, "y", arguments.y, s.context.device());
  require_same_conv_problem(describe_conv(arguments, s.problem), s.problem);
  if (is_empty(s.problem)) return;
  require_workspace(kConvName, execution, s.workspace_bytes);
  const NvtxRange range(s.range.c_str());
  const std::string reason =
      s.runner.unsupported_reason ? s.runner.unsupported_reason(arguments) : "";
  if (reason.empty()) return s.runner.run(arguments, execution);
  if (!s.stand_in.run) {
    throw_unsupported("conv: " + std::string(s.choice.strategy->name) + ": " + reason);
  }
  s.stand_in.run(arguments, execution);
}

}  // namespace wide
