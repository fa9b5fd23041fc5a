// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Order statistics, which a single outlier cannot move, and which samples are outliers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wide::bench {

std::vector<double> sorted_copy(std::span<const double> values);

/// Type 7 quantile (linear between order statistics; Hyndman and Fan 1996), q in [0, 1]. `sorted`
/// must not be empty.
double quantile(std::span<const double> sorted, double q);
/// No values: 0.
double median(std::span<const double> values);
/// Median of the absolute deviations from the median, unscaled.
double median_absolute_deviation(std::span<const double> values);

/// Samples beyond Tukey's fences (1977): mild ones lie more than 1.5 interquartile ranges outside
/// the quartiles, severe ones more than 3. They are counted, never removed.
struct Outliers {
  int64_t mild_low = 0, mild_high = 0, severe_low = 0, severe_high = 0;
  friend bool operator==(const Outliers&, const Outliers&) = default;
};
Outliers count_outliers(std::span<const double> sorted);

/// Tukey's fences themselves: whether a value is no outlier (0), a mild (1) or a severe one (2).
struct Fences {
  explicit Fences(std::span<const double> sorted);  ///< not empty
  int severity(double value) const;
  double q1 = 0, q3 = 0;
};

}  // namespace wide::bench
