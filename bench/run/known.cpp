// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/known.hpp"

#include <algorithm>
#include <vector>

#include "bench/run/evaluate.hpp"
#include "bench/statistics/intervals.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

constexpr double kSureLevel = 0.998;
constexpr double kSureShare = 2;  // of the target
constexpr int64_t kResamples = 2000;

bool are_medians_within(std::span<const RunnerResult> runners, uint64_t seed, double level,
                        double target) {
  const auto is_within = [&](const Measurement& m) {
    const Interval i =
        bootstrap_median_of_rounds(m.samples_ns, m.samples_round, seed, kResamples, level);
    return i.hi - i.lo <= 2 * target * median(m.samples_ns);
  };
  return std::all_of(runners.begin(), runners.end(), [&](const RunnerResult& runner) {
    return std::all_of(runner.measurements.begin(), runner.measurements.end(), is_within);
  });
}

/// Drift widens the medians' intervals only, not the speedups'.
bool are_within(std::span<const RunnerResult> strategies, std::span<const RunnerResult> baselines,
                uint64_t seed, double level, double target) {
  if (are_medians_within(strategies, seed, level, target) &&
      are_medians_within(baselines, seed, level, target)) {
    return true;
  }
  const std::vector<Speedup> speedups = find_speedups(strategies, baselines, seed, {}, level);
  const auto is_narrow = [&](const Speedup& s) {
    return s.ci_lo && *s.ci_hi - *s.ci_lo <= 2 * target * *s.speedup_ratio;
  };
  return !speedups.empty() && std::all_of(speedups.begin(), speedups.end(), is_narrow);
}

}  // namespace

bool are_known(std::span<const RunnerResult> strategies, std::span<const RunnerResult> baselines,
               uint64_t seed, double target) {
  return are_within(strategies, baselines, seed, kLevel, target) &&
         are_within(strategies, baselines, seed, kSureLevel, kSureShare * target);
}

}  // namespace wide::bench
