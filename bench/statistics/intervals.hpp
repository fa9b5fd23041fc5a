// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// 95 % intervals: Student's for a mean, and the bootstrap's for any statistic. The bootstrap is
// seeded, so that an interval can be computed again from its samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace wide::bench {

inline constexpr double kLevel = 0.95;

struct Interval {
  double lo = 0, hi = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// mean +- t(n - 1) s / sqrt(n). For means that are about normal. None for fewer than two values.
std::optional<Interval> t_interval(std::span<const double> values);

/// mean(a) - mean(b) +- t(v) sqrt(s_a^2 / n_a + s_b^2 / n_b), v by Satterthwaite (1946), as Welch's
/// test has it. None if either side has fewer than two values.
std::optional<Interval> welch_interval(std::span<const double> a, std::span<const double> b);

/// Ends of the bias-corrected and accelerated bootstrap interval (Efron 1987): quantiles of the
/// resampled statistics at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), z the normal quantiles of the
/// level, z0 the one of the share of resamples below `observed` (ties half), a the acceleration.
Interval bca_interval(std::vector<double> resampled, double observed, double acceleration,
                      double level = kLevel);

/// a = sum d^3 / (6 (sum d^2)^1.5), d = mean of the leave-one-out statistics - each of them. 0
/// if they do not differ.
double acceleration(std::span<const double> leave_one_out);

using Statistic = std::function<double(std::span<const double>)>;
/// BCa interval of any statistic, by drawing values. `values` must not be empty.
Interval bootstrap(std::span<const double> values, const Statistic& statistic, uint64_t seed,
                   int64_t resamples = 10'000);

/// BCa interval of mean(a) - mean(b), by drawing values of either side. With few values it is
/// narrower than Student's and Welch's intervals, which account for what a small sample hides.
/// Neither side may be empty.
Interval bootstrap_difference(std::span<const double> a, std::span<const double> b, uint64_t seed,
                              int64_t resamples = 2000);

/// BCa interval of the median. The cost of a resample does not depend on the number of values.
/// Fewer than six values cannot support 95 %: the interval is then about their range.
Interval bootstrap_median(std::span<const double> values, uint64_t seed, int64_t resamples = 2000);

/// How many independent values tell as much of the median as those of a series, in order of time:
/// n (1 - r) / (1 + r), r the correlation of neighbours' ranks, if that of values k apart is r^k.
/// At least 1, and all n where independent values have such an r in more than a tenth of cases.
size_t effective_count(std::span<const double> series);

/// bootstrap_median() of a series, in order of time: neighbours may be alike, so resamples are as
/// small as effective_count().
Interval bootstrap_median_of_series(std::span<const double> series, uint64_t seed,
                                    int64_t resamples = 2000, double level = kLevel);

/// Order statistics that contain the median of any distribution in at least 95 % of cases: [x_k,
/// x_(n + 1 - k)], k the largest with P(Bin(n, 1/2) < k) <= 2.5 %; for fewer than six values their
/// range, which contains it less often. `values` must not be empty.
Interval exact_median_interval(std::span<const double> values, double level = kLevel);

/// BCa interval of the median of all values, by drawing whole rounds: values of one round have
/// clocks, temperature and other load in common, and tell less than as many of different rounds.
/// `rounds` has each value's, in order of time; as many are drawn as effective_count() of their
/// medians. For fewer than two rounds, bootstrap_median().
Interval bootstrap_median_of_rounds(std::span<const double> values, std::span<const int64_t> rounds,
                                    uint64_t seed, int64_t resamples = 2000, double level = kLevel);

}  // namespace wide::bench
