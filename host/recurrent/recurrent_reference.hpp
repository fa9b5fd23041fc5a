// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of recurrent layers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "wide/catalog.hpp"
#include "wide/recurrent.hpp"

namespace wide::catalog {

/// One member's operands in fp64, densely packed; biases and states are empty where the problem has
/// none.
struct RecurrentReferenceMember {
  std::span<const double> x;                            ///< [B, T, in]
  std::span<const double> input_weight, hidden_weight;  ///< [G*H, in], [G*H, H]
  std::span<const double> input_bias, hidden_bias;      ///< [G*H]
  std::span<const double> first_hidden, first_cell;     ///< [B, H]
};

/// All steps of one sequence, [T, H], and for each value the largest error that passes:
/// kRecurrentToleranceFormula; and an lstm's final cell states, [H].
struct RecurrentReferenceSequence {
  std::vector<double> values, tolerances;
  std::vector<double> last_cell, last_cell_tolerances;
};

/// Bound: a step adds the tolerances of both products, the functions' own errors and the
/// roundings; errors that previous steps left in h and c reach it through weights, gates and the
/// slopes of the functions, at most 1/4 and 1. As for mlp's layers, this adds up in two ways, of
/// which the smaller counts: as if all errors conspired, and as variances of independent roundings,
/// of which six roots are ten standard deviations.
RecurrentReferenceSequence judge_recurrent_sequence(const RecurrentProblem& problem,
                                                    const RecurrentReferenceMember& member,
                                                    int64_t batch_row);
extern const std::string_view kRecurrentToleranceFormula;

}  // namespace wide::catalog
