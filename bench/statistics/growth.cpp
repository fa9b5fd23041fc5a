// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/growth.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace wide::bench {

namespace {

struct Order {
  const char* name;
  double (*value)(double n);
};

/// Slowest growth first. The constant comes first and has no b.
constexpr Order kOrders[] = {
    {"1", [](double) { return 0.0; }},       {"log n", [](double n) { return std::log2(n); }},
    {"n", [](double n) { return n; }},       {"n log n", [](double n) { return n * std::log2(n); }},
    {"n^2", [](double n) { return n * n; }}, {"n^3", [](double n) { return n * n * n; }}};

/// Minimises the sum of ((a + b f_i) / t_i - 1)^2 over a, b >= 0.
Growth fit(const Order& order, std::span<const double> sizes, std::span<const double> times) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double u = 1 / times[i], v = order.value(sizes[i]) / times[i];
    uu += u * u, uv += u * v, vv += v * v, u1 += u, v1 += v;
  }
  const double determinant = uu * vv - uv * uv;
  Growth growth{order.name, u1 / uu, 0, 0};
  if (determinant > 1e-12 * uu * vv) {
    growth.a = (u1 * vv - v1 * uv) / determinant;
    growth.b = (v1 * uu - u1 * uv) / determinant;
    if (growth.a < 0) growth.a = 0, growth.b = v1 / vv;
    if (growth.b < 0) growth.a = u1 / uu, growth.b = 0;
  }
  double squares = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double residual = (growth.a + growth.b * order.value(sizes[i])) / times[i] - 1;
    squares += residual * residual;
  }
  growth.rms_pct = 100 * std::sqrt(squares / static_cast<double>(sizes.size()));
  return growth;
}

}  // namespace

std::optional<Growth> fit_growth(std::span<const double> sizes, std::span<const double> times) {
  const auto is_fit = [](double value) { return value > 0 && std::isfinite(value); };
  if (sizes.size() != times.size() || !std::all_of(sizes.begin(), sizes.end(), is_fit) ||
      !std::all_of(times.begin(), times.end(), is_fit) ||
      std::set<double>(sizes.begin(), sizes.end()).size() < 3) {
    return std::nullopt;
  }
  std::vector<Growth> fits;
  for (const Order& order : kOrders) fits.push_back(fit(order, sizes, times));
  double least = fits.front().rms_pct;
  for (const Growth& growth : fits) least = std::min(least, growth.rms_pct);
  const double bound = std::max(1.1 * least, least + 0.1);
  return *std::find_if(fits.begin(), fits.end(),
                       [&](const Growth& growth) { return growth.rms_pct <= bound; });
}

}  // namespace wide::bench
