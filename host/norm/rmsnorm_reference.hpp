// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/rmsnorm.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes; gamma empty: 1.
///
/// Bound, with u = 2^-24, c = 16 + sqrt(D): a sum of D squares that is taken in lanes and then as a
/// tree errs by less than c u of itself, and s = 1 / sqrt(mean square + epsilon) by half of that;
/// the products by a few u each.
///   c u |gamma x s| + u_out |y| + min
void rmsnorm_reference(const RmsnormProblem& problem, std::span<const double> x,
                       std::span<const double> gamma, std::span<double> y,
                       std::span<double> tolerance);

}  // namespace wide::catalog
