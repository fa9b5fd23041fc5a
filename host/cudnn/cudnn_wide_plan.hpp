// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What plans of primitives with one kernel do alike where cuDNN has the primitive, too: `cudnn`
// calls it once, for members that lie as one tensor, and `sequential` once a member.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/core/pointer.hpp"
#include "host/core/wide_plan.hpp"
#include "host/core/workspace.hpp"
#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

/// Why members' channels are not those of one tensor, parameters of those member strides included;
/// empty where they are.
template <class Problem>
std::string joined_channels_reason(const Problem& p,
                                   std::initializer_list<int64_t> parameters = {}) {
  for (const auto& strides : {p.x, p.y}) {
    if (p.num_members > 1 && strides.member != p.channels * strides.channel)
      return "members do not lie side by side as channels";
  }
  for (const int64_t stride : parameters) {
    if (p.num_members > 1 && stride != 0 && stride != p.channels)
      return "members' parameters do not lie one after another";
  }
  return "";
}

/// Why members' operands, of those member strides, do not all begin where cuDNN's may; empty where
/// they do if the first member's does. Of a single member, too: whether cuDNN computes a member
/// does not depend on how many there are.
inline std::string member_alignment_reason(Dtype dtype, std::initializer_list<int64_t> strides,
                                           std::initializer_list<int64_t> fp32_strides = {}) {
  const auto are_aligned = [](Dtype of, std::initializer_list<int64_t> all) {
    return std::all_of(all.begin(), all.end(), [&](int64_t stride) {
      return stride * dtype_bytes(of) % kCudnnAlignment == 0;
    });
  };
  return are_aligned(dtype, strides) && are_aligned(Dtype::fp32, fp32_strides)
             ? ""
             : "members do not all begin at multiples of 16 bytes";
}

/// Member n's x and y, by address alone; other operands as they are.
template <class Problem, class Arguments>
Arguments member_operands(const Problem& p, const Arguments& arguments, int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype);
  Arguments own = arguments;
  own.x.data = advanced(arguments.x.data, n * p.x.member, bytes);
  own.y.data = advanced(arguments.y.data, n * p.y.member, bytes);
  return own;
}

/// Cudnn: the primitive's call with its plan, made of a device and a problem and, where it has
/// policies, a place in cuDNN's list. Has
/// member_reason(problem), why it cannot run the members one by one, and member_of(problem,
/// arguments, n), the operands of member n.
template <class Problem, class Cudnn>
struct CudnnWideState : WideState<Problem> {
  std::shared_ptr<const Cudnn> cudnn{};  ///< of the strategy, where y is not empty
  bool has_stand_in = false;  ///< our kernel runs what cuDNN does not: nobody asked for cuDNN

  /// Whether cuDNN ran; else own_strategy() is to. reason_against(arguments) is why cuDNN cannot
  /// run on the operands, or empty. Throws unsupported where there is one and nothing stands in.
  template <class Arguments>
  bool has_run(std::string_view primitive,
               std::type_identity_t<std::string (*)(const Arguments&)> reason_against,
               const Arguments& arguments, const Execution& execution) const {
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

/// What such a plan is made of besides its problem.
struct CudnnWideParts {
  bool is_empty = false;  ///< y is: nothing is planned, nothing runs
  bool wide_is_verified = false;
  LaunchRefusal launches{};  ///< of our kernel
  std::string stands_in{};   ///< where that runs instead of cuDNN, member after member
};

/// `sequential` calls cuDNN for each member where it can.
template <class Problem, class Cudnn>
void make_sequential(const Context& context, CudnnWideState<Problem, Cudnn>& state,
                     const CudnnWideParts& parts) {
  std::string refusal = Cudnn::member_reason(state.problem);
  if (refusal.empty()) {
    Problem one = state.problem;
    one.num_members = 1;
    refusal = cudnn_refusal(
        [&] { state.cudnn = std::make_shared<const Cudnn>(cudnn_device(context), one); });
  }
  state.has_stand_in = true;
  const std::string own = own_kernel_text("wide", parts.wide_is_verified, context.info());
  state.choice.explain +=
      state.cudnn == nullptr
          ? "; by our " + own + unless_told(state.choice.explain, refusal)
          : "; " + state.cudnn->explain() + "; where " + parts.stands_in + " by our " + own;
}

template <class Cudnn, class Problem>
CudnnWideState<Problem, Cudnn> make_cudnn_wide_state(std::string_view primitive,
                                                     const Context& context, const Problem& p,
                                                     const PlanOptions& options,
                                                     const CudnnWideParts& parts) {
  constexpr bool kHasPolicies =
      std::is_constructible_v<Cudnn, const CudnnDevice&, const Problem&, int>;
  std::shared_ptr<const Cudnn> cudnn;
  const auto make = [&](std::string_view policy) {
    if constexpr (kHasPolicies) {
      cudnn = std::make_shared<const Cudnn>(cudnn_device(context), p, cudnn_place(policy));
    } else {
      cudnn = std::make_shared<const Cudnn>(cudnn_device(context), p);
    }
  };
  VendorCall call{[&](std::string_view policy) {
    return parts.is_empty ? "there is nothing to compute" : cudnn_refusal([&] { make(policy); });
  }};
  if constexpr (kHasPolicies) call.policy_reason = wide_policy_reason;
  CudnnWideState<Problem, Cudnn> state{make_wide_state(
      primitive, context, p, options, parts.launches, parts.wide_is_verified, call)};
  if (state.choice.strategy == WideStrategy::cudnn && !parts.is_empty) {
    if (cudnn == nullptr) make(options.policy);
    state.cudnn = std::move(cudnn);
    state.has_stand_in = is_automatic(options.strategy);
    if constexpr (kHasPolicies) tell_cudnn_policy(state.choice, options.policy);
    state.choice.explain += "; " + state.cudnn->explain();
    if (state.has_stand_in) state.choice.explain += "; sequential where " + parts.stands_in;
  } else if (state.choice.strategy == WideStrategy::sequential && !parts.is_empty &&
             context.device().type == DeviceType::cuda) {
    make_sequential(context, state, parts);
  }
  if (state.cudnn) state.workspace_bytes = aligned_bytes(state.cudnn->workspace_bytes());
  state.vendor_calls.cudnn = state.cudnn != nullptr;
  return state;
}

}  // namespace wide
