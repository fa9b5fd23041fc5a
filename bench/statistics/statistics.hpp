// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a result reports of its samples, and ratios paired by rounds. Pure functions; the bootstrap
// is seeded, so a result can be computed again from its samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/statistics/intervals.hpp"

namespace wide::bench {

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
