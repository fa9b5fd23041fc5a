// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What binary's plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/binary.hpp"
#include "wide/tuning.hpp"

namespace wide {

void run_binary_cpu(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                    const BinaryArguments& arguments);
void run_binary_cuda(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                     const BinaryArguments& arguments, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const BinaryProblem& complete);
TuningKey tuning_key(const BinaryProblem& problem);

}  // namespace wide
