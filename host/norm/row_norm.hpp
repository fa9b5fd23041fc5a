// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls once operands are known to be right.
#pragma once

#include "host/norm/norm_strategy.hpp"
#include "wide/layernorm.hpp"

namespace wide {

void run_layernorm_cpu(const Context& context, const LayernormProblem& problem,
                       NormStrategy strategy, const LayernormArguments& arguments);
void run_layernorm_cuda(const Context& context, const LayernormProblem& problem,
                        NormStrategy strategy, const LayernormArguments& arguments, Stream stream);

}  // namespace wide
