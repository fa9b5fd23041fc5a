// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Robust statistics of samples and of paired ratios. Pure functions; the bootstrap is seeded, so a
// result can be computed again from its samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

struct Interval {
  double lo = 0, hi = 0;
};

/// Type 7 quantile (linear between order statistics), q in [0, 1]. `sorted` must not be empty.
double quantile(std::span<const double> sorted, double q);
double median(std::span<const double> values);
/// Median of the absolute deviations from the median, unscaled.
double median_absolute_deviation(std::span<const double> values);

/// 95 % percentile bootstrap interval of the median. The cost of a resample does not depend on the
/// number of values. Fewer than six values cannot carry 95 %: the interval is then about their
/// range.
Interval bootstrap_median(std::span<const double> values, uint64_t seed, int64_t resamples = 2000);

/// All fields of Statistics. No samples: all zero, n = 0. Throws invalid_argument for a NaN or a
/// negative sample: a timer that gives one is broken.
Statistics describe_samples(std::span<const double> samples, uint64_t seed = 1);

struct Ratio {
  double value = 0;  ///< exp(median of log ratios)
  Interval interval;
  int64_t pairs = 0;
};

/// baseline / strategy, paired: one value each per round. None where no pair has two positive
/// values.
std::optional<Ratio> paired_ratio(std::span<const double> baseline,
                                  std::span<const double> strategy, uint64_t seed = 1);

/// Samples and their rounds -> one median per round, rounds ascending.
struct RoundMedians {
  std::vector<int64_t> rounds;
  std::vector<double> medians;
};
RoundMedians round_medians(std::span<const double> samples, std::span<const int64_t> rounds);
/// The same for the rounds that both sides have.
std::optional<Ratio> paired_ratio(const RoundMedians& baseline, const RoundMedians& strategy,
                                  uint64_t seed = 1);

/// Pairs without which a verdict is never given: the whole range of fewer values holds the true
/// median in less than 95 % of cases (1 - 2^(1 - pairs)).
inline constexpr int64_t kMinPairs = 6;

/// "faster" or "slower" where the interval lies beyond 1 by more than 1 %, "same" where it lies
/// within 1 %, else "ambiguous"; always "ambiguous" below kMinPairs.
const char* verdict_of(const Ratio& ratio);

}  // namespace wide::bench
