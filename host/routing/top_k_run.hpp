// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What top_k's plan calls after the operands were validated. `sequential` makes choice after
// choice.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/top_k.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_top_k_cpu(const Context& context, const TopKProblem& problem, WideStrategy strategy,
                   const TopKArguments& arguments);
void run_top_k_cuda(const Context& context, const TopKProblem& problem, WideStrategy strategy,
                    const TopKArguments& arguments, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const TopKProblem& complete);
TuningKey tuning_key(const TopKProblem& problem);

}  // namespace wide
