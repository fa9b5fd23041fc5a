// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What pointwise's plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/pointwise.hpp"

namespace wide {

void run_pointwise_cpu(const Context& context, const PointwiseProblem& problem,
                       WideStrategy strategy, const PointwiseArguments& arguments);
void run_pointwise_cuda(const Context& context, const PointwiseProblem& problem,
                        WideStrategy strategy, const PointwiseArguments& arguments, Stream stream);

}  // namespace wide
