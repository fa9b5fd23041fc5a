// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What softmax's plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/softmax.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_softmax_cpu(const Context& context, const SoftmaxProblem& problem, WideStrategy strategy,
                     const SoftmaxArguments& arguments);
void run_softmax_cuda(const Context& context, const SoftmaxProblem& problem, WideStrategy strategy,
                      const SoftmaxArguments& arguments, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const SoftmaxProblem& complete);
TuningKey tuning_key(const SoftmaxProblem& problem);

}  // namespace wide
