// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a RoutedLinearProblem, and what strategies ask of one. Problems described from
// operands and problems written by hand go through the same checks.
#pragma once

#include <string>
#include <string_view>

#include "wide/routed_linear.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kRoutedLinearName = "routed_linear";

/// Whether weights are quantised blobs and not packed.
inline bool is_quantized(const RoutedLinearProblem& problem) {
  return problem.weight_format != WeightFormat::packed;
}

/// The problem with all strides filled in: packed ones where they are 0, and where nothing steps
/// along them. Throws invalid_argument that names the field for what is impossible.
RoutedLinearProblem complete_routed_linear_problem(RoutedLinearProblem problem);

/// Throws invalid_argument that names the first field in which `got` differs from the plan's.
void require_same_routed_linear_problem(const RoutedLinearProblem& got,
                                        const RoutedLinearProblem& plan);

/// Whether there is no output element.
inline bool is_empty(const RoutedLinearProblem& problem) {
  return problem.num_rows == 0 || problem.out_features == 0;
}

/// Rows of x.
inline int64_t rows_of_x(const RoutedLinearProblem& problem) {
  return problem.gathers ? problem.num_rows / problem.choices : problem.num_rows;
}

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const RoutedLinearProblem& complete);
TuningKey tuning_key(const RoutedLinearProblem& problem);

}  // namespace wide
