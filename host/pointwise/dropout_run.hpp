// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What dropout's plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/dropout.hpp"

namespace wide {

void run_dropout_cpu(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                     const DropoutArguments& arguments);
void run_dropout_cuda(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                      const DropoutArguments& arguments, Stream stream);

}  // namespace wide
