// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over members; shares only the problem struct with what it judges.
#include "host/pointwise/ensemble_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< u of the bounds
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Judged {
  double value = 0, tolerance = 0;  ///< without rounding to the dtype
};

Judged sum_of(const std::vector<double>& x) {
  double sum = 0, size = 0;
  for (const double v : x) {
    sum += v;
    size += std::fabs(v);
  }
  return {sum, static_cast<double>(x.size()) * kRoundoff * size};
}

Judged mean_of(const std::vector<double>& x) {
  const auto k = static_cast<double>(x.size());
  const Judged sum = sum_of(x);
  return {sum.value / k, (k + 1) / k * sum.tolerance / k};
}

Judged variance_of(const std::vector<double>& x) {
  const auto k = static_cast<double>(x.size());
  if (x.size() < 2) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double mean = mean_of(x).value;
  double sum = 0;
  for (const double v : x) sum += (v - mean) * (v - mean);
  return {sum / (k - 1), (7 * k + 8) * kRoundoff * sum / (k - 1)};
}

Judged log_mean_exp_of(const std::vector<double>& x) {
  const auto k = static_cast<double>(x.size());
  double largest = -kInfinity, sum = 0, weighted = 0;
  for (const double v : x) {
    if (std::isnan(v)) return {v, 0};
    largest = std::max(largest, v);
  }
  if (x.empty()) return {std::numeric_limits<double>::quiet_NaN(), 0};
  if (std::isinf(largest)) return {largest, 0};
  for (const double v : x) {
    const double power = std::exp(v - largest);
    sum += power;
    if (power > 0) weighted += (largest - v) * power;
  }
  const double log = std::log(sum / k);
  return {largest + log, kRoundoff * (2 * weighted / sum + 8 * k + 8 + 2 * std::fabs(log) +
                                      std::fabs(largest + log))};
}

size_t first_largest(std::span<const double> row) {
  size_t index = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) return i;
    if (row[i] > row[index]) index = i;
  }
  return index;
}

void vote(const std::vector<std::span<const double>>& members, std::span<double> y,
          std::span<double> tolerance) {
  std::fill(y.begin(), y.end(), 0.0);
  for (const auto& row : members) y[first_largest(row)] += 1;
  for (size_t d = 0; d < y.size(); ++d) {
    y[d] /= static_cast<double>(members.size());
    tolerance[d] = kRoundoff * y[d];
  }
}

}  // namespace

void ensemble_reference(const EnsembleProblem& problem,
                        const std::vector<std::span<const double>>& members, std::span<double> y,
                        std::span<double> tolerance) {
  const double u_out = unit_roundoff(problem.dtype), least = min_subnormal(problem.dtype);
  if (y.empty()) return;
  if (problem.function == EnsembleFunction::vote) vote(members, y, tolerance);
  for (size_t d = 0; d < y.size(); ++d) {
    if (problem.function != EnsembleFunction::vote) {
      std::vector<double> x;
      for (const auto& row : members) x.push_back(row[d]);
      const Judged judged = problem.function == EnsembleFunction::mean       ? mean_of(x)
                            : problem.function == EnsembleFunction::sum      ? sum_of(x)
                            : problem.function == EnsembleFunction::variance ? variance_of(x)
                                                                             : log_mean_exp_of(x);
      y[d] = judged.value;
      tolerance[d] = judged.tolerance + least;
    }
    tolerance[d] = std::isfinite(y[d]) ? tolerance[d] + u_out * std::fabs(y[d]) : 0;
  }
}

}  // namespace wide::catalog
