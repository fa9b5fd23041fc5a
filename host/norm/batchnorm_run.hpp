// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/batchnorm.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_batchnorm_cpu(const Context& context, const BatchnormProblem& problem,
                       WideStrategy strategy, const BatchnormArguments& arguments);
void run_batchnorm_cuda(const Context& context, const BatchnormProblem& problem,
                        WideStrategy strategy, const BatchnormArguments& arguments, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const BatchnormProblem& complete);
TuningKey tuning_key(const BatchnormProblem& problem);

}  // namespace wide
