// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of mlp: linear's, layer after layer, each with the errors that the previous ones let
// pass.
#pragma once

#include <span>
#include <string_view>

#include "wide/catalog.hpp"
#include "wide/mlp.hpp"

namespace wide::catalog {

/// One row of one member in fp64, and for each value the largest error that passes:
/// kMlpToleranceFormula. `weights` are the member's as MlpLayerPlace describes them.
///
/// Bound: a layer adds t, linear's tolerance of its output as if its input were exact: its sum's
/// order and its rounding. The errors of its inputs, e_i, reach an output as
/// L |sum_i w_i e_i|, L at most how much faster than its argument the activation changes: never
/// more than L sum_i |w_i| e_i. It is as large only if all errors conspire; the roundings of a
/// row's elements are independent, so that the variance of a sum is the sum of variances,
/// L^2 sum_i w_i^2 e_i^2, of which six roots are ten standard deviations (a rounding's is at most
/// t / sqrt(3)). Errors that one layer passes to two outputs of the next are not independent, but
/// weights of either sign make covariances of either sign. The smaller of both counts: for narrow
/// layers the first, which nothing exceeds; for wide ones the second, without which a deep chain's
/// tolerance would exceed its values. The factor 1 + 2^-7 is the rounding of a value that is off.
void judge_mlp_row(const MlpProblem& problem, std::span<const double> x,
                   std::span<const double> weights, Fill fill, std::span<double> values,
                   std::span<double> tolerances);
extern const std::string_view kMlpToleranceFormula;

}  // namespace wide::catalog
