// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What layernorm and rmsnorm do alike: both in layernorm's words, rmsnorm without a beta and
// without taking a mean off.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/layernorm.hpp"

namespace wide {

enum class RowNorm : uint8_t { layernorm, rmsnorm };

std::string_view row_norm_name(RowNorm norm);

/// With all strides filled in.
LayernormProblem complete_row_norm(RowNorm norm, LayernormProblem problem);
LayernormProblem describe_row_norm(RowNorm norm, const LayernormArguments& arguments,
                                   const LayernormProblem& like);
/// Throws for the first field in which the operands' problem differs from the plan's.
void require_same_row_norm(RowNorm norm, const LayernormProblem& got,
                           const LayernormProblem& expected);

/// Once operands are known to be right.
void run_row_norm_cpu(const Context& context, RowNorm norm, const LayernormProblem& problem,
                      WideStrategy strategy, const LayernormArguments& arguments);
void run_row_norm_cuda(const Context& context, RowNorm norm, const LayernormProblem& problem,
                       WideStrategy strategy, const LayernormArguments& arguments, Stream stream);

}  // namespace wide
