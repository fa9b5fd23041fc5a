// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What interpolate's plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/interpolate.hpp"

namespace wide {

void run_interpolate_cpu(const Context& context, const InterpolateProblem& problem,
                         WideStrategy strategy, const InterpolateArguments& arguments);
/// Of a problem with channels last that is not empty.
void run_interpolate_cpu_last(const Context& context, const InterpolateProblem& problem,
                              WideStrategy strategy, const InterpolateArguments& arguments);
void run_interpolate_cuda(const Context& context, const InterpolateProblem& problem,
                          WideStrategy strategy, const InterpolateArguments& arguments,
                          Stream stream);

}  // namespace wide
