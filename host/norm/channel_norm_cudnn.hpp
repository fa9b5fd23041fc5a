// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What plans of norms over channels do alike where cuDNN has the norm: `cudnn` calls it once, for
// members whose channels are one tensor's, and `sequential` once a member.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "host/core/wide_plan.hpp"
#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

/// Why they are not, parameters of those member strides included; empty where they are.
template <class Problem>
std::string joined_channels_reason(const Problem& p, std::initializer_list<int64_t> parameters) {
  for (const auto& strides : {p.x, p.y}) {
    if (p.num_members > 1 && strides.member != p.channels * strides.channel)
      return "members do not lie side by side as channels";
  }
  for (const int64_t stride : parameters) {
    if (p.num_members > 1 && stride != 0 && stride != p.channels)
      return "members' parameters do not lie one behind the other";
  }
  return "";
}

/// Why members' operands, those of fp32 parameters' strides included, do not all begin where
/// cuDNN's may; empty where they do if the first member's does. Of a single member, too: whether
/// cuDNN computes a member does not depend on how many there are.
template <class Problem>
std::string member_alignment_reason(const Problem& p,
                                    std::initializer_list<int64_t> fp32_parameters = {}) {
  const auto is_aligned = [&](int64_t stride, Dtype dtype) {
    return stride * dtype_bytes(dtype) % kCudnnAlignment == 0;
  };
  bool all = true;
  for (const int64_t stride :
       {p.x.member, p.y.member, p.gamma_member_stride, p.beta_member_stride}) {
    all = all && is_aligned(stride, p.dtype);
  }
  for (const int64_t stride : fp32_parameters) all = all && is_aligned(stride, Dtype::fp32);
  return all ? "" : "members do not all begin at multiples of 16 bytes";
}

/// Cudnn: the norm's graph with its plan, made of a device and a problem. Has
/// member_reason(problem), why it cannot run the members one by one, and member_of(problem,
/// arguments, n), the operands of member n.
template <class Problem, class Cudnn>
struct ChannelNormState : WideState<Problem> {
  std::shared_ptr<const Cudnn> cudnn{};  ///< of the strategy, where y is not empty
  bool has_stand_in = false;  ///< our kernel runs what cuDNN does not: nobody asked for cuDNN

  int64_t workspace_bytes() const { return cudnn ? cudnn->workspace_bytes() : 0; }

  /// Whether cuDNN ran; else own_strategy() is to. reason_against(arguments) is why cuDNN cannot
  /// run on the operands, or empty. Throws unsupported where there is one and nothing stands in.
  template <class Arguments, class Reason>
  bool has_run(std::string_view primitive, const Reason& reason_against, const Arguments& arguments,
               const Execution& execution) const {
    if (!cudnn) return false;
    const std::string reason = reason_against(arguments);
    if (reason.empty()) {
      const bool is_sequential = this->choice.strategy == WideStrategy::sequential;
      const int64_t calls = is_sequential ? this->problem.num_members : 1;
      for (int64_t n = 0; n < calls; ++n) {
        cudnn->run(Cudnn::member_of(this->problem, arguments, n), execution);
      }
      return true;
    }
    if (!has_stand_in) throw_unsupported(std::string(primitive) + ": cudnn: " + reason);
    return false;
  }
  WideStrategy own_strategy() const {
    return cudnn ? WideStrategy::sequential : this->choice.strategy;
  }
};

/// `sequential` calls cuDNN for each member where it can.
template <class Problem, class Cudnn>
void make_sequential(const Context& context, ChannelNormState<Problem, Cudnn>& state,
                     bool wide_is_verified, const std::string& stands_in) {
  std::string refusal = Cudnn::member_reason(state.problem);
  if (refusal.empty()) {
    Problem one = state.problem;
    one.num_members = 1;
    refusal = cudnn_refusal(
        [&] { state.cudnn = std::make_shared<const Cudnn>(cudnn_device(context), one); });
  }
  state.has_stand_in = true;
  const std::string own = own_kernel_text("wide", wide_is_verified, context.info());
  state.choice.explain += state.cudnn == nullptr ? "; by our " + own + ": " + refusal
                                                 : "; " + state.cudnn->explain() + "; where " +
                                                       stands_in + " by our " + own;
}

/// `stands_in`: where our kernel does, member after member, for the plan's explanation.
template <class Cudnn, class Problem>
ChannelNormState<Problem, Cudnn> make_channel_norm_state(std::string_view primitive,
                                                         const Context& context, const Problem& p,
                                                         const PlanOptions& options,
                                                         bool wide_is_verified,
                                                         const LaunchRefusal& launches,
                                                         const std::string& stands_in) {
  const bool is_empty = p.batch * p.channels * p.height * p.width == 0;
  std::shared_ptr<const Cudnn> cudnn;
  const auto make = [&] { cudnn = std::make_shared<const Cudnn>(cudnn_device(context), p); };
  const auto refusal = [&] {
    return is_empty ? "there is nothing to compute" : cudnn_refusal(make);
  };
  ChannelNormState<Problem, Cudnn> state{
      make_wide_state(primitive, context, p, options, wide_is_verified, launches, refusal)};
  if (state.choice.strategy == WideStrategy::cudnn && !is_empty) {
    if (cudnn == nullptr) make();
    state.cudnn = std::move(cudnn);
    state.has_stand_in = is_automatic(options.strategy);
    state.choice.explain += "; " + state.cudnn->explain();
    if (state.has_stand_in) state.choice.explain += "; sequential where " + stands_in;
  } else if (state.choice.strategy == WideStrategy::sequential && !is_empty &&
             context.device().type == DeviceType::cuda) {
    make_sequential(context, state, wide_is_verified, stands_in);
  }
  return state;
}

}  // namespace wide
