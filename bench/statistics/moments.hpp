// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mean, spread, and autocorrelation of a series. Sums are compensated, so that a large offset costs
// no digits of the variation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace wide::bench {

/// Whether none of them is NaN or infinite.
bool are_finite(std::span<const double> values);

/// Neumaier's compensated sum (1974).
double sum(std::span<const double> values);

struct Moments {
  int64_t n = 0;
  double mean = 0;
  double variance = 0;  ///< sum of (x - mean)^2 / (n - 1); 0 below two values
};
/// In two passes, the second corrected for the error of the first's mean (Chan, Golub, LeVeque
/// 1983). No values: all zero.
Moments moments(std::span<const double> values);

/// r1 = sum (x_i - mean)(x_i+1 - mean) / sum (x_i - mean)^2, i in order of time. None for fewer
/// than three values and if nothing varies.
std::optional<double> autocorrelation(std::span<const double> values);

/// Median slope over all pairs (Theil 1950, Sen 1968): robust against outliers. Uses at most
/// kMaxTrendPoints values, evenly chosen. None for fewer than two.
std::optional<double> trend_per_step(std::span<const double> values);
inline constexpr int64_t kMaxTrendPoints = 200;

}  // namespace wide::bench
