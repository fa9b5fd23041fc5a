// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/softmax.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes.
///
/// Bound, with u = 2^-24, d = x - max, s the sum of exp(d), A = sum |d| exp(d) / s: rounding d
/// moves exp(d) by |d| u of itself and exp errs by a few u, so s is off by (A + 4) u of itself and
/// by the order in which it is added, sqrt(D) u (lanes, then a tree); online sums are corrected by
/// factors of 1 + a few u. With E = 2 u (|d| + A + 16 + sqrt(D)):
///   softmax  E y + u_out y + min + 2^-140 (exp's smallest values are subnormal)
///   log      E + 2 u |log s| + u_out |y| + min
void softmax_reference(const SoftmaxProblem& problem, std::span<const double> x,
                       std::span<double> y, std::span<double> tolerance);

}  // namespace wide::catalog
