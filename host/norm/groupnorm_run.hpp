// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/groupnorm.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_groupnorm_cpu(const Context& context, const GroupnormProblem& problem,
                       WideStrategy strategy, const GroupnormArguments& arguments);
/// The same with channels last.
void run_groupnorm_cpu_last(const Context& context, const GroupnormProblem& problem,
                            WideStrategy strategy, const GroupnormArguments& arguments);
void run_groupnorm_cuda(const Context& context, const GroupnormProblem& problem,
                        WideStrategy strategy, const GroupnormArguments& arguments,
                        const Execution& execution);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const GroupnormProblem& complete);
TuningKey tuning_key(const GroupnormProblem& problem);

}  // namespace wide
