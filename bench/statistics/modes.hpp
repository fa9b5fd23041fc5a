// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether samples have more than one mode: a median between two of them is a time that no call
// takes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace wide::bench {

struct Dip {
  double statistic = 0, p = 1;
  /// Two modes or more: the dip is larger than that of 99 % of uniform samples.
  int modes() const { return p < 0.01 ? 2 : 1; }
  friend bool operator==(const Dip&, const Dip&) = default;
};

/// The dip (Hartigan and Hartigan 1985): the largest distance between the values' distribution and
/// the nearest unimodal one, from 1 / 2n to 1 / 4. p is that of uniform values, the
/// hardest unimodal case, by a table of simulated quantiles; it is never below
/// kLeastDipP. None for fewer than four values, values that are all equal or one that is not
/// finite.
///
/// Steps of a clock are not modes: equal values are spread evenly over `step` or, if that is 0,
/// over the least distance between values.
std::optional<Dip> dip_test(std::span<const double> values, double step = 0);

inline constexpr double kLeastDipP = 1e-3;

/// The dip of distinct values in ascending order, at least two.
double dip_of(std::span<const double> sorted);
/// How often n uniform values have this dip or a larger one.
double dip_p(double dip, size_t n);

}  // namespace wide::bench
