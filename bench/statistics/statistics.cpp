// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr double kLevel = 0.95;
constexpr double kIndifference = 0.01;  // speedups closer to 1 than this are nobody's decision

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

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

// A resample's median is made of its middle order statistics, and those of n uniform numbers are
// known: the k-th is Beta(k, n + 1 - k) distributed, and the next lies above it by the least of
// n - k uniform numbers on the rest. So they are drawn directly, in place of n values and their
// selection; sorting carries them over to the values.
Interval bootstrap_median(std::span<const double> values, uint64_t seed, int64_t resamples) {
  if (values.empty()) return {};
  const std::vector<double> sorted = sorted_copy(values);
  const size_t n = sorted.size(), lower_half = (n + 1) / 2;
  const auto value_at = [&](double place) {
    return sorted[std::min(static_cast<size_t>(place * static_cast<double>(n)), n - 1)];
  };
  std::mt19937_64 random(seed);
  std::gamma_distribution<double> below(static_cast<double>(lower_half));
  std::gamma_distribution<double> above(static_cast<double>(n + 1 - lower_half));
  std::vector<double> medians;
  medians.reserve(static_cast<size_t>(resamples));
  for (int64_t i = 0; i < resamples; ++i) {
    const double x = below(random), y = above(random);
    const double place = x / (x + y);
    double centre = value_at(place);
    if (n % 2 == 0) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      const double gap = 1 - std::pow(uniform, 1 / static_cast<double>(n - lower_half));
      centre = (centre + value_at(place + (1 - place) * gap)) / 2;
    }
    medians.push_back(centre);
  }
  std::sort(medians.begin(), medians.end());
  return {quantile(medians, (1 - kLevel) / 2), quantile(medians, (1 + kLevel) / 2)};
}

Statistics describe_samples(std::span<const double> samples, uint64_t seed) {
  Statistics s;
  for (const double sample : samples) {
    if (!(sample >= 0) || std::isinf(sample)) {
      throw Error(ErrorCode::invalid_argument, "statistics: a sample is " + std::to_string(sample) +
                                                   " ns, expected a finite time >= 0");
    }
  }
  s.n = static_cast<int64_t>(samples.size());
  if (samples.empty()) return s;
  const std::vector<double> sorted = sorted_copy(samples);
  double sum = 0, squares = 0;
  for (const double sample : sorted) sum += sample;
  s.mean_ns = sum / static_cast<double>(s.n);
  for (const double sample : sorted) squares += (sample - s.mean_ns) * (sample - s.mean_ns);
  s.stdev_ns = s.n > 1 ? std::sqrt(squares / static_cast<double>(s.n - 1)) : 0;
  s.cv_pct = s.mean_ns > 0 ? 100 * s.stdev_ns / s.mean_ns : 0;
  s.min_ns = sorted.front();
  s.p5_ns = quantile(sorted, 0.05);
  s.q1_ns = quantile(sorted, 0.25);
  s.median_ns = quantile(sorted, 0.5);
  s.q3_ns = quantile(sorted, 0.75);
  s.p95_ns = quantile(sorted, 0.95);
  s.max_ns = sorted.back();
  s.mad_ns = median_absolute_deviation(sorted);
  const Interval interval = bootstrap_median(sorted, seed);
  s.ci_lo_ns = interval.lo;
  s.ci_hi_ns = interval.hi;
  return s;
}

std::optional<Ratio> paired_ratio(std::span<const double> baseline,
                                  std::span<const double> strategy, uint64_t seed) {
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(baseline.size(), strategy.size()); ++i) {
    if (baseline[i] > 0 && strategy[i] > 0) logs.push_back(std::log(baseline[i] / strategy[i]));
  }
  if (logs.empty()) return std::nullopt;
  const Interval interval = bootstrap_median(logs, seed);
  return Ratio{std::exp(median(logs)),
               {std::exp(interval.lo), std::exp(interval.hi)},
               static_cast<int64_t>(logs.size())};
}

RoundMedians round_medians(std::span<const double> samples, std::span<const int64_t> rounds) {
  std::map<int64_t, std::vector<double>> by_round;
  for (size_t i = 0; i < samples.size(); ++i) by_round[rounds[i]].push_back(samples[i]);
  RoundMedians result;
  for (const auto& [round, values] : by_round) {
    result.rounds.push_back(round);
    result.medians.push_back(median(values));
  }
  return result;
}

std::optional<Ratio> paired_ratio(const RoundMedians& baseline, const RoundMedians& strategy,
                                  uint64_t seed) {
  std::vector<double> theirs, mine;
  for (size_t i = 0, j = 0; i < baseline.rounds.size() && j < strategy.rounds.size();) {
    if (baseline.rounds[i] == strategy.rounds[j]) {
      theirs.push_back(baseline.medians[i++]);
      mine.push_back(strategy.medians[j++]);
    } else if (baseline.rounds[i] < strategy.rounds[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return paired_ratio(std::span<const double>(theirs), std::span<const double>(mine), seed);
}

const char* verdict_of(const Ratio& ratio) {
  if (ratio.pairs < kMinPairs) return "ambiguous";
  const double high = 1 + kIndifference, low = 1 / high;
  if (ratio.interval.lo > high) return "faster";
  if (ratio.interval.hi < low) return "slower";
  if (ratio.interval.lo >= low && ratio.interval.hi <= high) return "same";
  return "ambiguous";
}

}  // namespace wide::bench
