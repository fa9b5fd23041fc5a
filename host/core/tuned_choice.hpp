// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// When "auto" follows a tuning cache. A pure function.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "host/core/strategy_choice.hpp"
#include "wide/plan.hpp"

namespace wide {

/// The cache's strategy and policy, where it is a candidate, can run the problem, is not refused by
/// the vendor, and is proved: by is_proved() or because the entry's measurement compared the same
/// kernels with the reference on this device. Else none, and `why_not` says why; it stays empty
/// where there is no cache.
std::optional<ChosenCandidate> tuned_candidate(const StrategyRequest& request,
                                               std::span<const StrategyCandidate> candidates,
                                               std::string& why_not);

/// Whether this is the explanation of a choice that follows a tuning cache.
bool explains_tuned(std::string_view explain);

/// What a plan with these options asks of its tuning cache for a complete problem.
///
/// Every primitive declares two functions of its problem in a header of its own:
/// - problem_key(): a complete one in words, on one line; different for different problems;
/// - tuning_key(): completes any; the name that plans give their primitive, and that key. Throws
///   invalid_argument where the problem is not legal.
template <class Problem>
Tuning tuning_of(const PlanOptions& options, std::string_view primitive, const Problem& problem) {
  if (options.tuning == nullptr || !is_automatic(options.strategy)) return {};
  return {options.tuning, problem_key(problem), kernel_hash(primitive)};
}

}  // namespace wide
