// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Student's test of many cells at once, each with few values: five values give a poor estimate of a
// cell's deviation, which improves when combined with the deviations of all other cells.
// Source: Smyth, "Linear models and empirical Bayes methods for assessing differential expression",
// 2004, sections 3 to 6.
#pragma once

#include <span>

namespace wide::bench {

/// A variance with this many degrees of freedom.
struct Variance {
  double value = 0, dof = 0;
};

/// The distribution of cells' true variances: value dof / chi-square(dof). Similar cells have a
/// large dof, infinite if they differ by no more than chance; cells that have nothing
/// in common a small one. From the mean and variance of the logarithms of the variances above 0;
/// dof is 0 for fewer than four of them: each cell is then judged by itself.
Variance prior_of(std::span<const Variance> cells);

/// The cell's variance combined with the prior: (d0 s0^2 + d s^2) / (d0 + d), d0 + d.
Variance moderated(const Variance& cell, const Variance& prior);

}  // namespace wide::bench
