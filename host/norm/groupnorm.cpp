// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// groupnorm's verbs: validate, choose, launch.
#include "wide/groupnorm.hpp"

#include <limits>

#include "host/core/member_fields.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/workspace.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/norm/channel_norm.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/instancenorm_cudnn.hpp"
#include "kernels/norm/groupnorm_last_cut.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kGroupnormName = "groupnorm";

void require_legal(const GroupnormProblem& p) {
  require_legal_channels(kGroupnormName, p);
  require_enumerator(kGroupnormName, "layout", p.layout, ChannelLayout::channels_last);
  require_at_least(kGroupnormName, "groups", p.groups, 1);
  WIDE_REQUIRE(p.channels % p.groups == 0,
               "groupnorm: groups is " + std::to_string(p.groups) +
                   ", expected a divisor of channels = " + std::to_string(p.channels));
  const int64_t values = num_elements({p.channels / p.groups, p.height, p.width});
  WIDE_REQUIRE(values <= std::numeric_limits<int32_t>::max(),
               "groupnorm: channels / groups * height * width is " + std::to_string(values) +
                   ", expected < 2^31 values a group");
}

GroupnormProblem resolved(GroupnormProblem p) {
  require_legal(p);
  complete_channels(kGroupnormName, p);
  return p;
}

constexpr auto kGroupnormFields = [](const auto& same, const GroupnormProblem& got,
                                     const GroupnormProblem& plan) {
  channel_norm_fields(same, got, plan);
  same("groups", got.groups, plan.groups);
  same("layout", got.layout, plan.layout);
};

bool is_last(const GroupnormProblem& p) {
  return p.layout == ChannelLayout::channels_last;
}

/// Of launches for so many members.
kernels::LastCut last_cut(const GroupnormProblem& p, int64_t members) {
  return kernels::groupnorm_last_cut(p, members, 16 / dtype_bytes(p.dtype));
}

/// Of our kernels; what members one after another use is used again.
int64_t own_workspace(const GroupnormProblem& p, WideStrategy strategy) {
  if (!is_last(p)) return 0;
  const int64_t members = strategy == WideStrategy::wide ? p.num_members : 1;
  return aligned_bytes(checked_bytes({last_cut(p, members).partials}, kernels::kPartialBytes));
}

/// Parameters of all members as [N, C].
template <class View>
View stacked(const char* name, const View& view, const GroupnormProblem& p) {
  const ConstTensorView read =
      member_parameters(kGroupnormName, name, view, p.num_members, p.channels);
  return View(view.data, view.dtype, read.shape, read.strides, view.device);
}

}  // namespace

std::string problem_key(const GroupnormProblem& complete) {
  return key_of_fields(complete, kGroupnormFields);
}
TuningKey tuning_key(const GroupnormProblem& problem) {
  return {std::string(kGroupnormName), problem_key(resolved(problem))};
}

GroupnormProblem describe_groupnorm(const GroupnormArguments& a, const GroupnormProblem& like) {
  GroupnormProblem p = like;
  for (const ConstTensorView& parameter : {a.gamma, a.beta}) {
    if (parameter.rank() == 2) p.num_members = parameter.shape[0];
  }
  read_channels(kGroupnormName, a, p);
  require_legal(p);
  return p;
}

template <>
struct PlanState<GroupnormProblem> : CudnnWideState<GroupnormProblem, InstancenormCudnn> {};
template class PrimitivePlan<GroupnormProblem>;

GroupnormPlan make_groupnorm_plan(const Context& context, const GroupnormProblem& problem,
                                  const PlanOptions& options) {
  const GroupnormProblem full = resolved(problem);
  const CudnnWideParts parts{
      is_empty_channels(full), is_wide_verified(kGroupnormName, context),
      launch_refusal(is_last(full) ? "blocks" : "groups of batch rows", full.num_members,
                     [&](int64_t members) {
                       return is_last(full) ? last_cut(full, members).blocks
                                            : kernels::groupnorm_slices(full, members);
                     }),
      "operands are not aligned to 16 bytes, or y is x"};
  GroupnormPlan::State state{
      make_cudnn_wide_state<InstancenormCudnn>(kGroupnormName, context, full, options, parts)};
  if (context.device().type == DeviceType::cuda && !state.cudnn) {
    state.workspace_bytes = own_workspace(full, state.choice.strategy);
  }
  return GroupnormPlan(std::make_shared<const GroupnormPlan::State>(std::move(state)));
}

void GroupnormPlan::prepare_weights(std::span<const GroupnormMember> members,
                                    const TensorView& gamma, const TensorView& beta,
                                    Stream stream) const {
  const GroupnormProblem& p = state_->problem;
  const auto pack_each = [&](ConstTensorView GroupnormMember::*field, const TensorView& packed) {
    pack(operands::channel_parameter, fields_of(members, field), packed, stream);
  };
  if (p.has_gamma) pack_each(&GroupnormMember::gamma, stacked("gamma", gamma, p));
  if (p.has_beta) pack_each(&GroupnormMember::beta, stacked("beta", beta, p));
}

void GroupnormPlan::restore_weights(const ConstTensorView& gamma, const ConstTensorView& beta,
                                    std::span<const TensorView> member_gammas,
                                    std::span<const TensorView> member_betas, Stream stream) const {
  const GroupnormProblem& p = state_->problem;
  if (p.has_gamma)
    unpack(operands::channel_parameter, stacked("gamma", gamma, p), member_gammas, stream);
  if (p.has_beta)
    unpack(operands::channel_parameter, stacked("beta", beta, p), member_betas, stream);
}

void GroupnormPlan::run(const GroupnormArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kGroupnormName, "y", arguments.y, s.context.device());
  require_same_problem(kGroupnormName, describe_groupnorm(arguments, s.problem), s.problem,
                       kGroupnormFields);
  require_workspace(kGroupnormName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    const auto run = is_last(s.problem) ? run_groupnorm_cpu_last : run_groupnorm_cpu;
    return run(s.context, s.problem, s.choice.strategy, arguments);
  }
  if (s.has_run(kGroupnormName, instancenorm_cudnn_unsupported_reason, arguments, execution)) {
    return;
  }
  run_groupnorm_cuda(s.context, s.problem, s.own_strategy(), arguments, execution);
}

}  // namespace wide
