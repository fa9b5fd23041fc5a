// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mean, spread, and how a series hangs together. Sums are compensated, so that a large offset costs
// no digits of what varies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace wide::bench {

/// None of them NaN or infinite.
bool are_finite(std::span<const double> values);

/// Neumaier's compensated sum (1974).
double sum(std::span<const double> values);

struct Moments {
  int64_t n = 0;
  double mean = 0;
  double variance = 0;  ///< sum of (x - mean)^2 / (n - 1); 0 below two values
};
/// In two passes, the second corrected by what the first's mean was off (Chan, Golub, LeVeque
/// 1983). No values: all zero.
Moments moments(std::span<const double> values);

/// r1 = sum (x_i - mean)(x_i+1 - mean) / sum (x_i - mean)^2, i in order of time. None below three
/// values and where nothing varies.
std::optional<double> autocorrelation(std::span<const double> values);

/// Median slope over all pairs (Theil 1950, Sen 1968): an outlier does not tilt it. Of at most
/// kMaxTrendPoints values, evenly chosen. None below two.
std::optional<double> trend_per_step(std::span<const double> values);
inline constexpr int64_t kMaxTrendPoints = 200;

}  // namespace wide::bench
