// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/layernorm.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes; gamma and beta empty: 1 and 0.
///
/// Bound, with u = 2^-24, c = 16 + sqrt(D), s = 1 / sqrt(variance + epsilon): a sum of D terms that
/// is taken in lanes and then as a tree errs by less than c u times the sum of magnitudes, whose
/// mean is at most sqrt(variance); the centred value, the variance (through s) and the products err
/// by a few u each. An error of the rough mean is corrected, so the row's offset does not appear.
///   |gamma| s (|x - mean| + sqrt(variance)) c u + 4 u (|gamma (x - mean) s| + |beta|) + u_out |y|
///   + min
void layernorm_reference(const LayernormProblem& problem, std::span<const double> x,
                         std::span<const double> gamma, std::span<const double> beta,
                         std::span<double> y, std::span<double> tolerance);

}  // namespace wide::catalog
