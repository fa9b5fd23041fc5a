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

Fences::Fences(std::span<const double> sorted)
    : q1(quantile(sorted, 0.25)), q3(quantile(sorted, 0.75)) {}

int Fences::severity(double value) const {
  const double range = q3 - q1;
  if (value < q1 - 3 * range || value > q3 + 3 * range) return 2;
  return value < q1 - 1.5 * range || value > q3 + 1.5 * range ? 1 : 0;
}

Outliers count_outliers(std::span<const double> sorted) {
  Outliers outliers;
  if (sorted.empty()) return outliers;
  const Fences fences(sorted);
  for (const double value : sorted) {
    const int severity = fences.severity(value);
    const bool is_low = value < fences.q1;
    if (severity == 1) ++(is_low ? outliers.mild_low : outliers.mild_high);
    if (severity == 2) ++(is_low ? outliers.severe_low : outliers.severe_high);
  }
  return outliers;
}

}  // namespace wide::bench
