// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Square problems of linear and what "auto" is for them, on devices that are not at hand.
#pragma once

#include <span>
#include <string_view>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide::test {

inline constexpr std::span<const VerifiedStrategy> kNothingProved;

inline LinearProblem problem_of(int64_t num_members, int64_t batch, int64_t d,
                                Dtype dtype = Dtype::fp32) {
  LinearProblem problem;
  problem.num_members = num_members;
  problem.batch = batch;
  problem.in_features = problem.out_features = d;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return complete_linear_problem(problem);
}

inline std::string_view chosen(const LinearProblem& problem, const DeviceInfo& device,
                               std::span<const VerifiedStrategy> verified) {
  return strategy_name(choose_linear_strategy(problem, device, verified).strategy);
}

}  // namespace wide::test
