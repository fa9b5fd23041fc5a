// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What makes a RaggedLinearProblem a possible one is include/wide/ragged_linear.hpp's to say and
// lay_out_ragged_linear's to check; here is the rest: whether operands fit a problem, and its
// members as problems of linear, which everything that computes them one by one is made for.
#pragma once

#include <string>

#include "wide/ragged_linear.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// Throws invalid_argument that names the operand, what was got and what expected.
void check_ragged_linear_arguments(const RaggedLinearProblem& problem,
                                   const RaggedLinearExtents& extents,
                                   const RaggedLinearArguments& arguments, Device device);

/// One dtype, one axis, contiguous, at least `elements` long.
void check_ragged_storage(std::string_view argument, const ConstTensorView& storage, Dtype dtype,
                          int64_t elements);

/// ragged_linear_extents() of a problem that is laid out, which is not done again.
RaggedLinearExtents extents_of_laid_out(const RaggedLinearProblem& problem);

/// Member `index` of a problem that is laid out, complete, of one member.
LinearProblem ragged_member_problem(const RaggedLinearProblem& problem, size_t index);
/// Its operands inside arguments that were checked.
LinearArguments ragged_member_arguments(const RaggedLinearProblem& problem,
                                        const RaggedLinearArguments& arguments, size_t index);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const RaggedLinearProblem& complete);
TuningKey tuning_key(const RaggedLinearProblem& problem);

}  // namespace wide
