// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What layernorm, rmsnorm and chain do alike, in chain's words: the norms are chains without a bias
// and an activation.
#pragma once

#include "host/core/wide_strategy.hpp"
#include "wide/chain.hpp"
#include "wide/layernorm.hpp"
#include "wide/rmsnorm.hpp"

namespace wide {

ChainProblem to_chain(const LayernormProblem& problem);
ChainProblem to_chain(const RmsnormProblem& problem);
LayernormProblem to_layernorm(const ChainProblem& problem);
RmsnormProblem to_rmsnorm(const ChainProblem& problem);
ChainArguments to_chain(const LayernormArguments& arguments);
ChainArguments to_chain(const RmsnormArguments& arguments);
inline const ChainArguments& to_chain(const ChainArguments& arguments) {
  return arguments;
}

/// With all strides filled in; `primitive` is the name in messages.
ChainProblem complete_rows(std::string_view primitive, ChainProblem problem);
ChainProblem describe_rows(std::string_view primitive, const ChainArguments& arguments,
                           const ChainProblem& like);
/// Throws for the first field in which the operands' problem differs from the plan's.
void require_same_chain(std::string_view primitive, const ChainProblem& got,
                        const ChainProblem& plan);

/// Why a launch is refused.
LaunchRefusal row_norm_launches(const ChainProblem& problem);

/// After the operands were validated.
void run_row_norm_cpu(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                      const ChainArguments& arguments);
void run_row_norm_cuda(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                       const ChainArguments& arguments, Stream stream);

/// On the context's device.
void run_row_norm(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                  const ChainArguments& arguments, Stream stream);

}  // namespace wide
