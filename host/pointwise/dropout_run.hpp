// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What dropout's plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/dropout.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_dropout_cpu(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                     const DropoutArguments& arguments);
void run_dropout_cuda(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                      const DropoutArguments& arguments, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const DropoutProblem& complete);
TuningKey tuning_key(const DropoutProblem& problem);

}  // namespace wide
