// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Student's test of many cells at once, each of few values: how much a cell's values deviate is
// known badly from five of them, and better together with how much those of all other cells do.
// Source: Smyth, "Linear models and empirical Bayes methods for assessing differential expression",
// 2004, sections 3 to 6.
#pragma once

#include <span>

namespace wide::bench {

/// A variance of so many degrees of freedom.
struct Variance {
  double value = 0, dof = 0;
};

/// What cells' true variances are distributed as: value dof / chi-square(dof). Alike cells have a
/// large dof, infinite where they differ by no more than chance makes them; cells that have nothing
/// in common a small one. By the mean and the variance of the logarithms, of variances above 0; dof
/// is 0 below four of them: a cell then stands for itself.
Variance prior_of(std::span<const Variance> cells);

/// The cell's variance in the light of the prior: (d0 s0^2 + d s^2) / (d0 + d), d0 + d.
Variance moderated(const Variance& cell, const Variance& prior);

}  // namespace wide::bench
