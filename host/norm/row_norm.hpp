// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What layernorm, rmsnorm and chain do alike, in chain's words: the norms are chains without a bias
// and an activation.
#pragma once

#include <string>
#include <string_view>

#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/wide_strategy.hpp"
#include "wide/chain.hpp"
#include "wide/layernorm.hpp"
#include "wide/rmsnorm.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline const ChainProblem& to_chain(const ChainProblem& problem) {
  return problem;
}
ChainProblem to_chain(const LayernormProblem& problem);
ChainProblem to_chain(const RmsnormProblem& problem);
LayernormProblem to_layernorm(const ChainProblem& problem);
RmsnormProblem to_rmsnorm(const ChainProblem& problem);
inline const ChainArguments& to_chain(const ChainArguments& arguments) {
  return arguments;
}
ChainArguments to_chain(const LayernormArguments& arguments);
ChainArguments to_chain(const RmsnormArguments& arguments);

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

/// Refuses operands that are not those of a plan with this state.
template <class State, class Arguments>
void require_rows(std::string_view primitive, const State& s, const Arguments& given) {
  const ChainProblem& problem = to_chain(s.problem);
  const ChainArguments& arguments = to_chain(given);
  require_device(primitive, "y", arguments.y, s.context.device());
  require_same_chain(primitive, describe_rows(primitive, arguments, problem), problem);
}

/// run() of a plan with this state.
template <class State, class Arguments>
void run_rows(std::string_view primitive, const State& s, const Arguments& given, Stream stream) {
  require_rows(primitive, s, given);
  const NvtxRange range(s.range.c_str());
  run_row_norm(s.context, to_chain(s.problem), s.choice.strategy, to_chain(given), stream);
}

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const ChainProblem& complete);
TuningKey tuning_key(const ChainProblem& problem);
std::string problem_key(const LayernormProblem& complete);
TuningKey tuning_key(const LayernormProblem& problem);
std::string problem_key(const RmsnormProblem& complete);
TuningKey tuning_key(const RmsnormProblem& problem);

}  // namespace wide
