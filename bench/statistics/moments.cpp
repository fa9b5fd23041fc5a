// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/moments.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/statistics/order.hpp"

namespace wide::bench {

bool are_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

double sum(std::span<const double> values) {
  double total = 0, lost = 0;
  for (const double value : values) {
    const double next = total + value;
    lost += std::fabs(total) >= std::fabs(value) ? (total - next) + value : (value - next) + total;
    total = next;
  }
  return total + lost;
}

Moments moments(std::span<const double> values) {
  Moments m;
  m.n = static_cast<int64_t>(values.size());
  if (values.empty()) return m;
  const auto n = static_cast<double>(m.n);
  m.mean = sum(values) / n;
  if (m.n < 2) return m;
  std::vector<double> deviations, squares;
  for (const double value : values) {
    deviations.push_back(value - m.mean);
    squares.push_back(deviations.back() * deviations.back());
  }
  const double off = sum(deviations);
  m.variance = std::max(0.0, (sum(squares) - off * off / n) / (n - 1));
  return m;
}

std::optional<double> autocorrelation(std::span<const double> values) {
  const Moments m = moments(values);
  if (m.n < 3 || !(m.variance > 0)) return std::nullopt;
  std::vector<double> products;
  for (size_t i = 0; i + 1 < values.size(); ++i)
    products.push_back((values[i] - m.mean) * (values[i + 1] - m.mean));
  return sum(products) / (m.variance * static_cast<double>(m.n - 1));
}

std::optional<double> trend_per_step(std::span<const double> values) {
  const auto n = static_cast<int64_t>(values.size());
  if (n < 2) return std::nullopt;
  const int64_t points = std::min(n, kMaxTrendPoints);
  std::vector<double> slopes;
  const auto place = [&](int64_t point) { return point * (n - 1) / (points - 1); };
  for (int64_t i = 0; i < points; ++i) {
    for (int64_t j = i + 1; j < points; ++j) {
      const int64_t from = place(i), to = place(j);
      slopes.push_back((values[static_cast<size_t>(to)] - values[static_cast<size_t>(from)]) /
                       static_cast<double>(to - from));
    }
  }
  return median(slopes);
}

}  // namespace wide::bench
