// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What binary's plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/binary.hpp"

namespace wide {

void run_binary_cpu(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                    const BinaryArguments& arguments);
void run_binary_cuda(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                     const BinaryArguments& arguments, Stream stream);

}  // namespace wide
