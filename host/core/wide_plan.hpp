// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the plans of primitives with one kernel have in common.
#pragma once

#include <cstdint>
#include <string_view>

#include "host/core/plan_checks.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/verified.hpp"
#include "host/core/wide_strategy.hpp"
#include "kernels/common/row_blocks.hpp"
#include "wide/context.hpp"
#include "wide/plan.hpp"

namespace wide {

template <class Problem>
using WideState = PlanFacts<Problem, WideChoice>;

/// On devices like the context's.
inline bool is_wide_verified(std::string_view primitive, const Context& context) {
  return is_verified(primitive, "wide", context.info().compute_capability);
}

/// Throws invalid_argument for a policy that there is not, and whatever choose_wide_strategy()
/// does.
template <class Problem>
WideState<Problem> make_wide_state(std::string_view primitive, const Context& context,
                                   const Problem& problem, const PlanOptions& options,
                                   const LaunchRefusal& launches, bool wide_is_verified,
                                   const VendorCall& cudnn_call) {
  require_policy(primitive, options, cudnn_call.policy_reason);
  return {primitive, context, problem,
          choose_wide_strategy(primitive, context.info(), options.strategy, wide_is_verified,
                               launches, cudnn_call, tuning_of(options, primitive, problem))};
}

/// Of a primitive that cuDNN has not.
template <class Problem>
WideState<Problem> make_wide_state(std::string_view primitive, const Context& context,
                                   const Problem& problem, const PlanOptions& options,
                                   const LaunchRefusal& launches = {}) {
  return make_wide_state(primitive, context, problem, options, launches,
                         is_wide_verified(primitive, context), {});
}

/// Why a launch by rows is refused, for softmax and the norms of rows.
template <class Problem>
LaunchRefusal row_launches(const Problem& p) {
  return launch_refusal("blocks", p.num_members, [&](int64_t members) {
    return kernels::row_blocks(p.rows, members, p.features);
  });
}

}  // namespace wide
