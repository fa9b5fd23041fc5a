// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a LinearProblem. Separate from the plan, because problems described from operands
// and problems written by hand go through the same checks.
#pragma once

#include <string>

#include "wide/linear.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// Whether weights are quantised blobs and not packed.
inline bool is_quantized(const LinearProblem& problem) {
  return problem.weight_format != WeightFormat::packed;
}

/// The problem with all strides filled in: packed ones where both are 0, and the packed value
/// along axes that nothing steps along, so that equal layouts compare equal. Throws
/// invalid_argument that names the field for impossible sizes, products that do not fit in 64 bits,
/// outputs that overlap each other, and dtypes that linear does not take.
LinearProblem complete_linear_problem(LinearProblem problem);

/// Throws invalid_argument that names the first field in which `got` differs from the plan's.
void require_same_linear_problem(const LinearProblem& got, const LinearProblem& plan);

/// Whether there is no output element.
bool is_empty(const LinearProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const LinearProblem& complete);
TuningKey tuning_key(const LinearProblem& problem);

}  // namespace wide
