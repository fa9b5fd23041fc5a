// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/batchnorm.hpp"

namespace wide {

void run_batchnorm_cpu(const Context& context, const BatchnormProblem& problem,
                       WideStrategy strategy, const BatchnormArguments& arguments);
void run_batchnorm_cuda(const Context& context, const BatchnormProblem& problem,
                        WideStrategy strategy, const BatchnormArguments& arguments, Stream stream);

}  // namespace wide
