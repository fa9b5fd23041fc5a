// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/statistics/moments.hpp"
#include "bench/statistics/normality.hpp"
#include "bench/statistics/order.hpp"
#include "bench/statistics/ranks.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kResamples = 10'000;
constexpr size_t kFewPairs = 12;        // with seven, the bootstrap's 95 % are 87 %
constexpr double kIndifference = 0.01;  // speedups closer to 1 than this do not matter

std::map<int64_t, std::vector<double>> by_round(std::span<const double> samples,
                                                std::span<const int64_t> rounds) {
  std::map<int64_t, std::vector<double>> values;
  for (size_t i = 0; i < rounds.size(); ++i) values[rounds[i]].push_back(samples[i]);
  return values;
}

std::vector<double> means_of_rounds(std::span<const double> samples,
                                    std::span<const int64_t> rounds) {
  std::vector<double> means;
  for (const auto& [round, values] : by_round(samples, rounds))
    means.push_back(moments(values).mean);
  return means;
}

}  // namespace

Statistics describe_samples(std::span<const double> samples, std::span<const int64_t> rounds,
                            uint64_t seed) {
  Statistics s;
  for (const double sample : samples) {
    if (!(sample >= 0) || std::isinf(sample)) {
      throw Error(ErrorCode::invalid_argument,
                  "statistics: a sample is " + text(sample) + " ns, expected a finite time >= 0");
    }
  }
  s.n = static_cast<int64_t>(samples.size());
  if (samples.empty()) return s;
  const std::vector<double> sorted = sorted_copy(samples);
  const Moments m = moments(sorted);
  s.mean_ns = m.mean;
  s.stdev_ns = std::sqrt(m.variance);
  s.cv_pct = s.mean_ns > 0 ? 100 * s.stdev_ns / s.mean_ns : 0;
  s.min_ns = sorted.front();
  s.p5_ns = quantile(sorted, 0.05);
  s.q1_ns = quantile(sorted, 0.25);
  s.median_ns = quantile(sorted, 0.5);
  s.q3_ns = quantile(sorted, 0.75);
  s.p95_ns = quantile(sorted, 0.95);
  s.p99_ns = quantile(sorted, 0.99);
  s.max_ns = sorted.back();
  s.mad_ns = median_absolute_deviation(sorted);
  s.iqr_ns = s.q3_ns - s.q1_ns;
  s.ci_resamples = kResamples;
  s.ci_seed = seed;
  const std::vector<double> means = means_of_rounds(samples, rounds);
  s.ci_is_of_rounds = means.size() > 1;
  const Interval interval = s.ci_is_of_rounds
                                ? bootstrap_median_of_rounds(samples, rounds, seed, kResamples)
                                : bootstrap_median(sorted, seed, kResamples);
  s.ci_lo_ns = interval.lo;
  s.ci_hi_ns = interval.hi;
  if (const auto mean = t_interval(s.ci_is_of_rounds ? means : sorted))
    s.ci_mean_lo_ns = mean->lo, s.ci_mean_hi_ns = mean->hi;
  s.outliers = count_outliers(sorted);
  s.autocorr_lag1 = autocorrelation(samples);
  return s;
}

void describe_rounds(const RoundMedians& rounds, double round_s, Statistics& s) {
  const std::vector<double>& medians = rounds.medians;
  const Moments m = moments(medians);
  if (m.n >= 2 && m.mean > 0) s.between_round_cv_pct = 100 * std::sqrt(m.variance) / m.mean;
  const auto slope = trend_per_step(medians);
  if (slope && round_s > 0 && s.median_ns > 0)
    s.trend_pct_per_s = 100 * *slope / s.median_ns / round_s;
  if (const auto trend = mann_kendall(medians)) s.trend_p = trend->p;
  Normality normality{"shapiro_wilk", 0, 0};
  auto test = shapiro_wilk(medians);
  if (!test) {
    normality.test = "anderson_darling";
    test = anderson_darling(medians);
  }
  if (!test) return;
  normality.statistic = test->statistic;
  normality.p = test->p;
  s.normality = normality;
}

namespace {

void add_log_ratio(double baseline, double strategy, std::vector<double>& logs) {
  if (baseline > 0 && strategy > 0) logs.push_back(std::log(baseline / strategy));
}

std::optional<Ratio> ratio_of(const std::vector<double>& logs, uint64_t seed, double level) {
  if (logs.empty()) return std::nullopt;
  const Interval interval = logs.size() < kFewPairs
                                ? exact_median_interval(logs, level)
                                : bootstrap_median_of_series(logs, seed, kResamples, level);
  const auto test = wilcoxon_signed_rank(logs);
  return Ratio{std::exp(median(logs)),
               {std::exp(interval.lo), std::exp(interval.hi)},
               static_cast<int64_t>(logs.size()),
               test ? test->p : 1};
}

}  // namespace

std::optional<Ratio> paired_ratio(std::span<const double> baseline,
                                  std::span<const double> strategy, uint64_t seed, double level) {
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(baseline.size(), strategy.size()); ++i)
    add_log_ratio(baseline[i], strategy[i], logs);
  return ratio_of(logs, seed, level);
}

RoundMedians round_medians(std::span<const double> samples, std::span<const int64_t> rounds) {
  RoundMedians result;
  for (const auto& [round, values] : by_round(samples, rounds)) {
    result.rounds.push_back(round);
    result.medians.push_back(median(values));
  }
  return result;
}

std::vector<double> paired_log_ratios(const RoundMedians& baseline, const RoundMedians& strategy) {
  std::vector<double> logs;
  for (size_t i = 0, j = 0; i < baseline.rounds.size() && j < strategy.rounds.size();) {
    if (baseline.rounds[i] == strategy.rounds[j]) {
      add_log_ratio(baseline.medians[i++], strategy.medians[j++], logs);
    } else if (baseline.rounds[i] < strategy.rounds[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return logs;
}

std::optional<Ratio> paired_ratio(const RoundMedians& baseline, const RoundMedians& strategy,
                                  uint64_t seed, double level) {
  return ratio_of(paired_log_ratios(baseline, strategy), seed, level);
}

double faster_bound(double noise_floor) {
  return 1 + std::max(kIndifference, noise_floor);
}

const char* verdict_of(const Ratio& ratio, double noise_floor) {
  if (ratio.pairs < kMinPairs) return "ambiguous";
  const double high = faster_bound(noise_floor), low = 1 / high;
  if (ratio.interval.lo > high) return "faster";
  if (ratio.interval.hi < low) return "slower";
  if (ratio.interval.lo >= low && ratio.interval.hi <= high) return "same";
  return "ambiguous";
}

}  // namespace wide::bench
