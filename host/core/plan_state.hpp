// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the plans of all primitives keep, and how they tell it. A primitive derives
// PlanState<XProblem> from PlanFacts and instantiates PrimitivePlan<XProblem> in its own file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "wide/context.hpp"
#include "wide/plan.hpp"

namespace wide {

/// Choice: a StrategyChoice.
template <class Problem, class Choice>
struct PlanFacts {
  PlanFacts(std::string_view primitive, const Context& context_, const Problem& problem_,
            Choice choice_)
      : context(context_),
        problem(problem_),
        choice(std::move(choice_)),
        range("wide::" + std::string(primitive) + "(" +
              std::string(strategy_name(choice.strategy)) + ")") {}

  Context context;
  Problem problem;    ///< with all strides filled in
  Choice choice;      ///< the strategy, its policy and why
  std::string range;  ///< for NVTX: "wide::linear(simt)"
  int64_t workspace_bytes = 0;
  VendorCalls vendor_calls{};
};

template <class Problem>
const Problem& PrimitivePlan<Problem>::problem() const {
  return state_->problem;
}
template <class Problem>
std::string_view PrimitivePlan<Problem>::strategy() const {
  return strategy_name(state_->choice.strategy);
}
template <class Problem>
std::string_view PrimitivePlan<Problem>::policy() const {
  return state_->choice.policy;
}
template <class Problem>
std::string PrimitivePlan<Problem>::explain() const {
  return state_->choice.explain;
}
template <class Problem>
int64_t PrimitivePlan<Problem>::workspace_bytes() const {
  return state_->workspace_bytes;
}
template <class Problem>
VendorCalls PrimitivePlan<Problem>::vendor_calls() const {
  return state_->vendor_calls;
}

}  // namespace wide
