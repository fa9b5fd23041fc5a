// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A sort, and plain fp64 loops; shares only the problem struct with what it judges.
#include "host/routing/top_k_reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< u of the bounds

/// The softmax of `scores` over `all`.
void softmax(std::span<const double> scores, std::span<const double> all, std::span<double> y,
             std::span<double> tolerance) {
  const double largest = scores[0];
  double sum = 0, weighted = 0;
  for (const double score : all) {
    const double power = std::exp(score - largest);
    sum += power;
    if (power > 0) weighted += (largest - score) * power;
  }
  const double common = weighted / sum + 16 + std::sqrt(static_cast<double>(all.size()));
  for (size_t k = 0; k < y.size(); ++k) {
    const double difference = std::fabs(scores[k] - largest);
    y[k] = std::exp(scores[k] - largest) / sum;
    const double error =
        std::isinf(difference) ? 0 : (2 * (difference + common) + 1) * kRoundoff * y[k];
    tolerance[k] = error + min_subnormal(Dtype::fp32) + 0x1p-140;
  }
}

}  // namespace

void top_k_reference(const TopKProblem& problem, std::span<const double> scores,
                     std::span<int64_t> ids, std::span<double> gates, std::span<double> tolerance) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const double x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return std::isnan(x) ? !std::isnan(y) : x > y;
  });
  std::copy_n(order.begin(), ids.size(), ids.begin());
  if (gates.empty()) return;

  std::vector<double> chosen;
  for (const int64_t id : ids) chosen.push_back(scores[static_cast<size_t>(id)]);
  if (problem.gate == GateFunction::softmax) return softmax(chosen, chosen, gates, tolerance);
  if (problem.gate == GateFunction::softmax_all) return softmax(chosen, scores, gates, tolerance);
  for (size_t k = 0; k < gates.size(); ++k) {
    const bool is_sigmoid = problem.gate == GateFunction::sigmoid;
    gates[k] = is_sigmoid ? 1 / (1 + std::exp(-chosen[k])) : chosen[k];
    const double below = std::isfinite(chosen[k]) ? std::max(-chosen[k], 0.0) : 0;
    tolerance[k] = is_sigmoid ? (17 + 4 * below) * kRoundoff * gates[k] + 0x1p-119 : 0;
  }
}

}  // namespace wide::catalog
