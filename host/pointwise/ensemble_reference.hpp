// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "wide/ensemble.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes. `members`: the row of each member that
/// counts, in their order, of which there are K.
///
/// Bound, with u = 2^-24:
///   sum       K - 1 additions: K u sum |x| + u_out |y| + min
///   mean      a division more: (K + 1) u mean |x| + u_out |y| + min
///   variance  Differences to the first member, d, are rounded once, by u |d|. For any members
///             sum d^2 <= K S, S the sum of squares about the mean, since the first is one of them
///             and (first - mean)^2 <= S (K - 1) / K: that moves S by at most 2 u sqrt(K) S. The
///             running mean is off by some sqrt(i) roundings of numbers that are at most
///             sqrt(2 S), and meets sum |delta| <= sqrt(2 K S): 4 K u S. Adding up: K u S.
///             In all (7 K + 8) u y + u_out y + min, independent of an offset of all members.
///   vote      a quotient of two whole numbers: (u + u_out) y
///   log_mean_exp  As softmax_reference has it: a term errs by (2 |d| + 4) u of itself, d = x - m,
///             once more for each of up to K times that the largest grows, A = sum |d| exp(d) /
///             sum exp(d): (2 A + 8 K + 8) u, the logarithm's 2 u |log|, the sum's (u + u_out) |y|,
///             min
void ensemble_reference(const EnsembleProblem& problem,
                        const std::vector<std::span<const double>>& members, std::span<double> y,
                        std::span<double> tolerance);

}  // namespace wide::catalog
