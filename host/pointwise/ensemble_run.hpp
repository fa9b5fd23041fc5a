// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What ensemble's plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/ensemble.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// `state`: what strategies keep between members, in the plan's workspace.
void run_ensemble_cpu(const Context& context, const EnsembleProblem& problem, WideStrategy strategy,
                      const EnsembleArguments& arguments, void* state);
void run_ensemble_cuda(const Context& context, const EnsembleProblem& problem,
                       WideStrategy strategy, const EnsembleArguments& arguments, void* state,
                       Stream stream);

/// Four-byte numbers kept per element of y from member to member.
constexpr int64_t ensemble_parts(EnsembleFunction function) {
  return function == EnsembleFunction::variance       ? 3
         : function == EnsembleFunction::log_mean_exp ? 2
                                                      : 1;
}

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const EnsembleProblem& complete);
TuningKey tuning_key(const EnsembleProblem& problem);

}  // namespace wide
