// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What pooling's plan calls after the operands were validated.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/pooling.hpp"

namespace wide {

void run_pooling_cpu(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                     const PoolingArguments& arguments);
void run_pooling_cuda(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                      const PoolingArguments& arguments, Stream stream);

}  // namespace wide
