// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/moderated.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moments.hpp"

namespace wide::bench {

namespace {

constexpr size_t kMinCells = 4;

/// x with trigamma(x) = value. trigamma decreases from infinity to 0: bisection finds it.
double trigamma_inverse(double value) {
  double low = 1e-8, high = 1e8;
  for (int i = 0; i < 200 && high / low > 1 + 1e-12; ++i) {
    const double middle = std::sqrt(low * high);
    (trigamma(middle) > value ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

Variance prior_of(std::span<const Variance> cells) {
  // log s^2 - digamma(d / 2) + log(d / 2) has the mean of the log of the true variance, and its
  // variance plus trigamma(d / 2), which is due to chance.
  std::vector<double> logs, of_chance;
  for (const Variance& cell : cells) {
    if (!(cell.value > 0) || !(cell.dof > 0)) continue;
    const double half = cell.dof / 2;
    logs.push_back(std::log(cell.value) - digamma(half) + std::log(half));
    of_chance.push_back(trigamma(half));
  }
  if (logs.size() < kMinCells) return {};
  const Moments of_logs = moments(logs);
  const double excess = of_logs.variance - moments(of_chance).mean;
  if (!(excess > 0)) return {std::exp(of_logs.mean), std::numeric_limits<double>::infinity()};
  const double half = trigamma_inverse(excess);
  return {std::exp(of_logs.mean + digamma(half) - std::log(half)), 2 * half};
}

Variance moderated(const Variance& cell, const Variance& prior) {
  if (std::isinf(prior.dof)) return prior;
  const double dof = prior.dof + cell.dof;
  return {(prior.dof * prior.value + cell.dof * cell.value) / dof, dof};
}

}  // namespace wide::bench
