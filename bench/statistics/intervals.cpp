// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <utility>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/order.hpp"
#include "bench/statistics/ranks.hpp"
#include "bench/statistics/two_samples.hpp"

namespace wide::bench {

namespace {

constexpr double kTail = (1 - kLevel) / 2;
constexpr double kNoticeable = 1.2815515655446004;  // a tenth of normal values are larger

/// For a sorted sample's median, from at most three distinct values.
double median_acceleration(std::span<const double> sorted) {
  const size_t n = sorted.size(), half = n / 2;
  if (n % 2 == 0 || n < 3) return 0;  // as many lie below as above
  const double low = sorted[half - 1], middle = sorted[half], high = sorted[half + 1];
  std::vector<double> medians(half, (middle + high) / 2);
  medians.insert(medians.end(), half, (low + middle) / 2);
  medians.push_back((low + high) / 2);
  return acceleration(medians);
}

// A resample's median depends on its middle order statistics, and those of `drawn` uniform numbers
// are known: the k-th is Beta(k, drawn + 1 - k) distributed, and the next exceeds it by the
// smallest of drawn - k uniform numbers on the remaining range. So they are drawn directly, instead
// of values and their selection; sorting maps them to the values.
Interval interval_by_drawing(std::span<const double> values, size_t drawn, uint64_t seed,
                             int64_t resamples, double level) {
  if (values.empty()) return {};
  const std::vector<double> sorted = sorted_copy(values);
  const size_t n = sorted.size(), lower_half = (drawn + 1) / 2;
  const auto value_at = [&](double place) {
    return sorted[std::min(static_cast<size_t>(place * static_cast<double>(n)), n - 1)];
  };
  std::mt19937_64 random(seed);
  std::gamma_distribution<double> below(static_cast<double>(lower_half));
  std::gamma_distribution<double> above(static_cast<double>(drawn + 1 - lower_half));
  std::vector<double> medians;
  medians.reserve(static_cast<size_t>(resamples));
  for (int64_t i = 0; i < resamples; ++i) {
    const double x = below(random), y = above(random);
    const double place = x / (x + y);
    double centre = value_at(place);
    if (drawn % 2 == 0) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      const double gap = 1 - std::pow(uniform, 1 / static_cast<double>(drawn - lower_half));
      centre = (centre + value_at(place + (1 - place) * gap)) / 2;
    }
    medians.push_back(centre);
  }
  return bca_interval(std::move(medians), quantile(sorted, 0.5), median_acceleration(sorted),
                      level);
}

/// Values in ascending order, each counted as often as its round was drawn.
class RoundsOfValues {
 public:
  RoundsOfValues(std::span<const double> values, std::span<const int64_t> rounds) {
    std::map<int64_t, size_t> places;
    for (const int64_t round : rounds) places.emplace(round, places.size());
    sizes_.resize(places.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t place = places.at(rounds[i]);
      ++sizes_[place];
      sorted_.emplace_back(values[i], place);
    }
    std::sort(sorted_.begin(), sorted_.end());
  }
  size_t count() const { return sizes_.size(); }
  double median(std::span<const int64_t> times_drawn) const {
    int64_t total = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) total += times_drawn[i] * sizes_[i];
    const int64_t upper = total / 2, lower = total - 1 - upper;  // the middle, or both middle ones
    double below = 0;
    int64_t passed = 0;
    for (const auto& [value, round] : sorted_) {
      const int64_t before = passed;
      passed += times_drawn[round];
      if (before <= lower && lower < passed) below = value;
      if (upper < passed) return (below + value) / 2;
    }
    return below;
  }

 private:
  std::vector<std::pair<double, size_t>> sorted_;
  std::vector<int64_t> sizes_;
};

}  // namespace

std::optional<Interval> t_interval(std::span<const double> values) {
  if (values.size() < 2 || !are_finite(values)) return std::nullopt;
  const Moments m = moments(values);
  const auto n = static_cast<double>(m.n);
  const double half = student_quantile(1 - kTail, n - 1) * std::sqrt(m.variance / n);
  return Interval{m.mean - half, m.mean + half};
}

std::optional<Interval> welch_interval(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2 || !are_finite(a) || !are_finite(b)) return std::nullopt;
  const MeanDifference d = welch_difference(a, b);
  const double half = d.error > 0 ? student_quantile(1 - kTail, d.dof) * d.error : 0;
  return Interval{d.value - half, d.value + half};
}

Interval bca_interval(std::vector<double> resampled, double observed, double acceleration,
                      double level) {
  std::sort(resampled.begin(), resampled.end());
  const auto [first, last] = std::equal_range(resampled.begin(), resampled.end(), observed);
  const auto count = static_cast<double>(resampled.size());
  const double below =
      static_cast<double>((first - resampled.begin()) + (last - resampled.begin())) / 2;
  const double share = std::clamp(below / count, 0.5 / count, 1 - 0.5 / count);
  const double bias = normal_quantile(share);
  const auto end = [&](double share_below) {
    const double z = bias + normal_quantile(share_below);
    const double room = 1 - acceleration * z;
    return quantile(resampled, room > 0 ? normal_below(bias + z / room) : (z > 0 ? 1 : 0));
  };
  return {end((1 - level) / 2), end((1 + level) / 2)};
}

double acceleration(std::span<const double> leave_one_out) {
  const double centre = moments(leave_one_out).mean;
  double squares = 0, cubes = 0;
  for (const double value : leave_one_out) {
    const double d = centre - value;
    squares += d * d;
    cubes += d * d * d;
  }
  const double scale = 6 * std::pow(squares, 1.5);
  return scale > 0 ? cubes / scale : 0;
}

Interval bootstrap(std::span<const double> values, const Statistic& statistic, uint64_t seed,
                   int64_t resamples) {
  std::mt19937_64 random(seed);
  std::vector<double> drawn(values.size()), resampled, leave_one_out;
  for (int64_t i = 0; i < resamples; ++i) {
    for (double& value : drawn) value = values[random() % values.size()];
    resampled.push_back(statistic(drawn));
  }
  for (size_t i = 0; values.size() > 1 && i < values.size(); ++i) {
    std::vector<double> others(values.begin(), values.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    leave_one_out.push_back(statistic(others));
  }
  return bca_interval(std::move(resampled), statistic(values), acceleration(leave_one_out));
}

Interval bootstrap_difference(std::span<const double> a, std::span<const double> b, uint64_t seed,
                              int64_t resamples) {
  std::mt19937_64 random(seed);
  const auto drawn_mean = [&](std::span<const double> values) {
    double total = 0;
    const size_t count = values.size();
    for (size_t i = 0; i < count; ++i) total += values[random() % count];
    return total / static_cast<double>(count);
  };
  std::vector<double> resampled(static_cast<size_t>(resamples));
  for (double& value : resampled) {
    value = drawn_mean(a);
    value -= drawn_mean(b);
  }
  // The difference without one value, up to a constant: (mean - x) / n of its side.
  const double mean_a = moments(a).mean, mean_b = moments(b).mean;
  std::vector<double> without;
  for (const double x : a) without.push_back((mean_a - x) / static_cast<double>(a.size()));
  for (const double x : b) without.push_back((x - mean_b) / static_cast<double>(b.size()));
  return bca_interval(std::move(resampled), mean_a - mean_b, acceleration(without));
}

Interval bootstrap_median(std::span<const double> values, uint64_t seed, int64_t resamples) {
  return interval_by_drawing(values, values.size(), seed, resamples, kLevel);
}

size_t effective_count(std::span<const double> series) {
  const auto n = static_cast<double>(series.size());
  const auto r = autocorrelation(midranks(series));
  // Of independent values r is -1 / n on average, deviating by 1 / sqrt(n); of others it is too
  // small by (1 + 3 r) / n (Marriott and Pope 1954).
  if (!r || (*r + 1 / n) * std::sqrt(n) <= kNoticeable) return series.size();
  const double unbiased = std::min((n * *r + 1) / (n - 3), 1.0);
  return static_cast<size_t>(std::max(1.0, std::round(n * (1 - unbiased) / (1 + unbiased))));
}

Interval bootstrap_median_of_series(std::span<const double> series, uint64_t seed,
                                    int64_t resamples, double level) {
  return interval_by_drawing(series, effective_count(series), seed, resamples, level);
}

Interval exact_median_interval(std::span<const double> values, double level) {
  const std::vector<double> sorted = sorted_copy(values);
  const auto n = static_cast<double>(sorted.size());
  const auto share = [&](double k) {  // P(Bin(n, 1/2) = k)
    const double ways = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
    return std::exp(ways - n * std::log(2.0));
  };
  size_t k = 0;  // counted from 0
  double below = share(0);
  while ((below += share(static_cast<double>(k + 1))) <= (1 - level) / 2) ++k;
  return {sorted[k], sorted[sorted.size() - 1 - k]};
}

Interval bootstrap_median_of_rounds(std::span<const double> values, std::span<const int64_t> rounds,
                                    uint64_t seed, int64_t resamples, double level) {
  const RoundsOfValues of(values, rounds);
  const size_t count = of.count();
  if (count < 2) return interval_by_drawing(values, values.size(), seed, resamples, level);
  std::mt19937_64 random(seed);
  std::vector<double> of_each, medians, leave_one_out;
  std::vector<int64_t> times_drawn(count);
  for (int64_t& drawn : times_drawn) {
    drawn = 1;
    of_each.push_back(of.median(times_drawn));
    drawn = 0;
  }
  const size_t draws = effective_count(of_each);
  for (int64_t i = 0; i < resamples; ++i) {
    std::fill(times_drawn.begin(), times_drawn.end(), 0);
    for (size_t draw = 0; draw < draws; ++draw) ++times_drawn[random() % count];
    medians.push_back(of.median(times_drawn));
  }
  std::fill(times_drawn.begin(), times_drawn.end(), 1);
  const double observed = of.median(times_drawn);
  for (int64_t& drawn : times_drawn) {
    drawn = 0;
    leave_one_out.push_back(of.median(times_drawn));
    drawn = 1;
  }
  return bca_interval(std::move(medians), observed, acceleration(leave_one_out), level);
}

}  // namespace wide::bench
