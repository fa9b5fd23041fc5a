// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a result reports of its samples, and ratios paired by rounds. Pure functions; the bootstrap
// is seeded, so a result can be computed again from its samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/statistics/intervals.hpp"
#include "bench/statistics/modes.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

/// Whether the rounds' medians may be normally distributed; informative only.
struct Normality {
  std::string test;  ///< "shapiro_wilk", or "anderson_darling" above 5000 rounds
  double statistic = 0, p = 0;
  friend bool operator==(const Normality&, const Normality&) = default;
};

struct Statistics {
  int64_t n = 0;
  double mean_ns = 0, stdev_ns = 0, cv_pct = 0;
  double min_ns = 0, p5_ns = 0, q1_ns = 0, median_ns = 0, q3_ns = 0, p95_ns = 0, max_ns = 0,
         mad_ns = 0;
  double ci_lo_ns = 0, ci_hi_ns = 0;  ///< 95 % bootstrap interval of the median
  // Since 1.3.
  double p99_ns = 0, iqr_ns = 0;
  std::string ci_method = "bca";                       ///< before 1.3: "percentile_bootstrap"
  int64_t ci_resamples = 0;                            ///< 0: unknown
  std::optional<double> ci_mean_lo_ns, ci_mean_hi_ns;  ///< Student's, of the mean
  Outliers outliers;
  std::optional<double> autocorr_lag1;         ///< of samples in order of time
  std::optional<double> between_round_cv_pct;  ///< of the rounds' medians
  std::optional<double> trend_pct_per_s;       ///< of the rounds' medians (Theil and Sen)
  std::optional<Normality> normality;
  // Since 1.6.
  std::optional<Dip> dip;         ///< of the samples; none if they are too few or all equal
  std::optional<double> trend_p;  ///< of the rounds' medians (Mann and Kendall)
  /// What speaks against the median, by the names in doubts.hpp; none: not judged.
  std::optional<std::vector<std::string>> doubts;
  std::optional<uint64_t> ci_seed;  ///< of the resamples; since 1.7
  /// Whether both intervals draw rounds, since samples of a round are alike; before 1.10 they drew
  /// samples, and were too narrow.
  bool ci_is_of_rounds = false;
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

/// All fields of Statistics that follow from samples, in order of time, and their rounds. Intervals
/// draw rounds if there are two or more, else samples. No samples: all zero, n = 0. Throws
/// invalid_argument for a NaN or a negative sample: a timer that gives one is broken.
Statistics describe_samples(std::span<const double> samples, std::span<const int64_t> rounds = {},
                            uint64_t seed = 1);

/// Samples and their rounds -> one median per round, rounds ascending.
struct RoundMedians {
  std::vector<int64_t> rounds;
  std::vector<double> medians;
};
RoundMedians round_medians(std::span<const double> samples, std::span<const int64_t> rounds);

/// The fields about rounds, which are `round_s` apart: spread between them, trend, normality.
void describe_rounds(const RoundMedians& rounds, double round_s, Statistics& statistics);

struct Ratio {
  double value = 0;  ///< exp(median of log ratios)
  Interval interval;
  int64_t pairs = 0;
  double p = 1;  ///< Wilcoxon's signed ranks of the log ratios, two-sided
};

/// baseline / strategy, paired: one value each per round, in order of time. None if no pair has two
/// positive values.
std::optional<Ratio> paired_ratio(std::span<const double> baseline,
                                  std::span<const double> strategy, uint64_t seed = 1,
                                  double level = kLevel);

/// Logarithms of baseline / strategy in the rounds that both sides have; the speedup is exp of
/// their median.
std::vector<double> paired_log_ratios(const RoundMedians& baseline, const RoundMedians& strategy);

/// paired_ratio() of these rounds.
std::optional<Ratio> paired_ratio(const RoundMedians& baseline, const RoundMedians& strategy,
                                  uint64_t seed = 1, double level = kLevel);

/// The least number of pairs for a verdict: the whole range of fewer values contains the true
/// median in less than 95 % of cases (1 - 2^(1 - pairs)). Below twelve, the interval is
/// exact_median_interval()'s.
inline constexpr int64_t kMinPairs = 6;

/// The ratio above which an interval is "faster": 1 % above 1, or the noise floor.
double faster_bound(double noise_floor = 0);

/// "faster" or "slower" where the interval lies beyond 1 by more than 1 % and the noise floor,
/// "same" where it lies within, else "ambiguous"; always "ambiguous" below kMinPairs.
const char* verdict_of(const Ratio& ratio, double noise_floor = 0);

}  // namespace wide::bench
