// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What pointwise's plan calls once operands are known to be right.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/pointwise.hpp"

namespace wide {

void run_pointwise_cpu(const Context& context, const PointwiseProblem& problem,
                       WideStrategy strategy, const PointwiseArguments& arguments);
void run_pointwise_cuda(const Context& context, const PointwiseProblem& problem,
                        WideStrategy strategy, const PointwiseArguments& arguments, Stream stream);

/// The problem's function of `count` values in place; `slopes`: prelu's, one each. For whoever has
/// values at hand.
void apply_pointwise_cpu(const PointwiseProblem& problem, float* values, const float* slopes,
                         int64_t count);

}  // namespace wide
