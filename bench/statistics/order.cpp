// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/order.hpp"

#include <algorithm>
#include <cmath>

namespace wide::bench {

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double quantile(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

double median(std::span<const double> values) {
  return values.empty() ? 0 : quantile(sorted_copy(values), 0.5);
}

double median_absolute_deviation(std::span<const double> values) {
  const double centre = median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::fabs(value - centre));
  return median(deviations);
}

Outliers count_outliers(std::span<const double> sorted) {
  Outliers outliers;
  if (sorted.empty()) return outliers;
  const double q1 = quantile(sorted, 0.25), q3 = quantile(sorted, 0.75), range = q3 - q1;
  for (const double value : sorted) {
    if (value < q1 - 3 * range) {
      ++outliers.severe_low;
    } else if (value < q1 - 1.5 * range) {
      ++outliers.mild_low;
    } else if (value > q3 + 3 * range) {
      ++outliers.severe_high;
    } else if (value > q3 + 1.5 * range) {
      ++outliers.mild_high;
    }
  }
  return outliers;
}

}  // namespace wide::bench
