// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/modes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/statistics/dip_quantiles.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

/// Over the places from `low` to `high`: the greatest convex function below the points (x, y), or
/// with `is_concave` the least concave one above them.
struct Hull {
  std::vector<size_t> corners;  ///< places at which it touches the points
  std::vector<double> heights;  ///< at every place from `low` on

  template <class Height>
  Hull(std::span<const double> x, size_t low, size_t high, bool is_concave, const Height& y) {
    for (size_t k = low; k <= high; ++k) {
      const auto lies_beyond = [&](size_t a, size_t b) {
        const double turn = (y(b) - y(a)) * (x[k] - x[a]) - (y(k) - y(a)) * (x[b] - x[a]);
        return is_concave ? turn <= 0 : turn >= 0;
      };
      while (corners.size() >= 2 && lies_beyond(corners[corners.size() - 2], corners.back()))
        corners.pop_back();
      corners.push_back(k);
    }
    heights.resize(high - low + 1);
    for (size_t c = 0; c + 1 < corners.size(); ++c) {
      const size_t a = corners[c], b = corners[c + 1];
      const double slope = (y(b) - y(a)) / (x[b] - x[a]);
      for (size_t k = a; k < b; ++k) heights[k - low] = y(a) + slope * (x[k] - x[a]);
    }
    heights.back() = y(high);
  }
};

/// Distinct values, from 0 to 1.
std::vector<double> spread_ties(const std::vector<double>& sorted, double step) {
  if (!(step > 0)) {
    step = std::numeric_limits<double>::infinity();
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i] > sorted[i - 1]) step = std::min(step, sorted[i] - sorted[i - 1]);
    }
  }
  std::vector<double> spread;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    const auto count = static_cast<double>(end - begin);
    for (size_t i = 0; i < end - begin; ++i)
      spread.push_back(sorted[begin] + step * ((static_cast<double>(i) + 0.5) / count - 0.5));
  }
  std::sort(spread.begin(), spread.end());
  const double least = spread.front(), range = spread.back() - least;
  for (size_t i = 0; i < spread.size(); ++i) {
    spread[i] = (spread[i] - least) / range;
    if (i > 0 && spread[i] <= spread[i - 1]) spread[i] = std::nextafter(spread[i - 1], 2.0);
  }
  return spread;
}

}  // namespace

/// Interpolates log p in sqrt(n) times the dip, which hardly depends on n: between the table's two
/// sizes that enclose n or, above them, at the largest.
double dip_p(double dip, size_t n) {
  const auto size = static_cast<double>(n);
  const auto* above = std::lower_bound(std::begin(kSizes), std::end(kSizes), size);
  if (above == std::end(kSizes)) --above;
  const auto* below = *above > size && above != std::begin(kSizes) ? above - 1 : above;
  const double weight = above == below ? 0 : (size - *below) / (*above - *below);
  const double scaled = std::sqrt(size) * dip;
  double last = 0.5 / std::sqrt(size), last_log_p = 0;  // the smallest possible dip
  for (size_t i = 0; i < std::size(kTails); ++i) {
    const double quantile = (1 - weight) * kQuantiles[below - std::begin(kSizes)][i] +
                            weight * kQuantiles[above - std::begin(kSizes)][i];
    const double log_p = std::log(kTails[i]);
    if (scaled < quantile)
      return std::exp(last_log_p +
                      (log_p - last_log_p) * std::max(0.0, scaled - last) / (quantile - last));
    last = std::max(last, quantile);
    last_log_p = log_p;
  }
  return kLeastDipP;
}

/// Hartigan and Hartigan's algorithm: the interval with the mode shrinks to where the concave
/// function above the distribution's upper corners and the convex one below its lower corners are
/// farthest apart; the dip is their error outside of it. Heights are counts.
double dip_of(std::span<const double> x) {
  const auto lower = [](size_t k) { return static_cast<double>(k); };
  const auto upper = [](size_t k) { return static_cast<double>(k + 1); };
  double dip = 1;
  for (size_t low = 0, high = x.size() - 1; low < high;) {
    const Hull convex(x, low, high, false, lower), concave(x, low, high, true, upper);
    const auto gap = [&](size_t k) { return concave.heights[k - low] - convex.heights[k - low]; };
    double most = 0;
    size_t next_low = low, next_high = high;
    for (const size_t k : convex.corners) {
      if (gap(k) <= most) continue;
      most = gap(k);
      next_low = k;
      next_high = *std::lower_bound(concave.corners.begin(), concave.corners.end(), k);
    }
    for (const size_t k : concave.corners) {
      if (gap(k) <= most) continue;
      most = gap(k);
      next_high = k;
      next_low = *(std::upper_bound(convex.corners.begin(), convex.corners.end(), k) - 1);
    }
    if (most <= dip) break;
    for (size_t k = low; k <= next_low; ++k)
      dip = std::max(dip, upper(k) - convex.heights[k - low]);
    for (size_t k = next_high; k <= high; ++k)
      dip = std::max(dip, concave.heights[k - low] - lower(k));
    if (next_low == low && next_high == high) break;
    low = next_low;
    high = next_high;
  }
  return dip / (2 * static_cast<double>(x.size()));
}

std::optional<Dip> dip_test(std::span<const double> values, double step) {
  constexpr size_t kLeast = 4;
  const bool are_finite =
      std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (values.size() < kLeast || !are_finite) return std::nullopt;
  const std::vector<double> sorted = sorted_copy(values);
  if (!(sorted.back() > sorted.front())) return std::nullopt;
  const double dip = dip_of(spread_ties(sorted, step));
  return Dip{dip, dip_p(dip, sorted.size())};
}

}  // namespace wide::bench
