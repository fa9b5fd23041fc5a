// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/normality.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

constexpr size_t kMaxShapiro = 5000;

/// c0 + c1 x + c2 x^2 + ..
double polynomial(std::initializer_list<double> coefficients, double x) {
  double value = 0;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c)
    value = value * x + *c;
  return value;
}

/// The upper half of Royston's weights, of the largest value first; the lower half is its
/// negative. Those of the one or two outermost values are fitted, the others are normal scores
/// scaled so that all squares sum to 1.
std::vector<double> shapiro_weights(size_t count) {
  const auto n = static_cast<double>(count);
  if (count == 3) return {std::numbers::sqrt2 / 2};
  std::vector<double> scores;
  double squares = 0;
  for (size_t i = 1; i <= count / 2; ++i) {
    scores.push_back(-normal_quantile((static_cast<double>(i) - 0.375) / (n + 0.25)));
    squares += 2 * scores.back() * scores.back();
  }
  const double u = 1 / std::sqrt(n), length = std::sqrt(squares);
  std::vector<double> fitted{
      scores[0] / length + polynomial({0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056}, u)};
  if (count > 5) {
    fitted.push_back(scores[1] / length +
                     polynomial({0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633}, u));
  }
  double rest = squares, room = 1;
  for (size_t i = 0; i < fitted.size(); ++i) {
    rest -= 2 * scores[i] * scores[i];
    room -= 2 * fitted[i] * fitted[i];
  }
  const double scale = std::sqrt(room / rest);
  for (double& score : scores) score *= scale;
  std::copy(fitted.begin(), fitted.end(), scores.begin());
  return scores;
}

/// `distance` is 1 - W.
double shapiro_p(double distance, size_t count) {
  const auto n = static_cast<double>(count);
  if (count == 3) {
    const double w = std::max(1 - distance, 0.75);
    return std::max(0.0,
                    6 / std::numbers::pi * (std::asin(std::sqrt(w)) - std::asin(std::sqrt(0.75))));
  }
  if (!(distance > 0)) return 1;
  const double x = std::log(n);
  double y = std::log(distance), centre, spread;
  if (count <= 11) {
    const double bound = polynomial({-2.273, 0.459}, n);
    if (y >= bound) return 0;  // beyond what normal samples can reach in this approximation
    y = -std::log(bound - y);
    centre = polynomial({0.544, -0.39978, 0.025054, -6.714e-4}, n);
    spread = std::exp(polynomial({1.3822, -0.77857, 0.062767, -0.0020322}, n));
  } else {
    centre = polynomial({-1.5861, -0.31082, -0.083751, 0.0038915}, x);
    spread = std::exp(polynomial({-0.4803, -0.082676, 0.0030302}, x));
  }
  return normal_above((y - centre) / spread);
}

double anderson_p(double a) {
  if (a < 0.2) return 1 - std::exp(-13.436 + 101.14 * a - 223.73 * a * a);
  if (a < 0.34) return 1 - std::exp(-8.318 + 42.796 * a - 59.938 * a * a);
  if (a < 0.6) return std::exp(0.9177 - 4.279 * a - 1.38 * a * a);
  // The parabola of the last branch increases again from 153.
  return a < 13 ? std::exp(1.2937 - 5.709 * a + 0.0186 * a * a) : 0;
}

}  // namespace

std::optional<Test> shapiro_wilk(std::span<const double> values) {
  if (values.size() < 3 || values.size() > kMaxShapiro || !are_finite(values)) return std::nullopt;
  const std::vector<double> sorted = sorted_copy(values);
  const Moments m = moments(sorted);
  const double squares = m.variance * static_cast<double>(m.n - 1);
  if (!(sorted.back() > sorted.front()) || !(squares > 0)) return std::nullopt;
  const std::vector<double> weights = shapiro_weights(sorted.size());
  const double scale = std::sqrt(squares);
  double projection = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    projection += weights[i] * ((sorted[sorted.size() - 1 - i] - sorted[i]) / scale);
  // 1 - W as a product: near 1, W itself has lost its digits.
  const double distance = std::max(0.0, (1 - projection) * (1 + projection));
  return Test{1 - distance, shapiro_p(distance, sorted.size()), 0};
}

std::optional<Test> anderson_darling(std::span<const double> values) {
  if (values.size() < 8 || !are_finite(values)) return std::nullopt;
  const std::vector<double> sorted = sorted_copy(values);
  const Moments m = moments(sorted);
  const double deviation = std::sqrt(m.variance);
  if (!(sorted.back() > sorted.front()) || !(deviation > 0)) return std::nullopt;
  const auto n = static_cast<double>(m.n);
  std::vector<double> terms;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double low = (sorted[i] - m.mean) / deviation;
    const double high = (sorted[sorted.size() - 1 - i] - m.mean) / deviation;
    terms.push_back((2 * static_cast<double>(i) + 1) *
                    (std::log(normal_below(low)) + std::log(normal_above(high))));
  }
  const double a = (-n - sum(terms) / n) * (1 + 0.75 / n + 2.25 / (n * n));
  if (!std::isfinite(a)) return std::nullopt;
  return Test{a, std::clamp(anderson_p(a), 0.0, 1.0), 0};
}

}  // namespace wide::bench
