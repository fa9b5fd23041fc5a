// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/evaluate.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/statistics/statistics.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kReliableSamples = 30;
constexpr double kPlausible = 1.05;  // a ceiling is a measurement, too
constexpr double kResolution = 5;    // samples below this many timer floors are noise

/// Which ceiling a call of this duration would have to break; null where none.
const char* broken_ceiling(const Yardstick& y, double time_ns) {
  if (y.floor.flops_ns > kPlausible * time_ns) return "flops";
  if (y.outgrows_cache && y.floor.bytes_ns > kPlausible * time_ns) return "bandwidth";
  return nullptr;
}

void judge_plausibility(RunnerResult& runner, const Measurement& m, const Yardstick& y) {
  const char* ceiling = broken_ceiling(y, m.stats.median_ns);
  if (ceiling == nullptr || runner.status != Status::ok) return;
  char text[160];
  std::snprintf(text, sizeof(text),
                "regime %s: %.0f ns, but at the measured %s ceiling the work takes %.0f ns",
                std::string(to_string(m.regime)).c_str(), m.stats.median_ns, ceiling,
                ceiling[0] == 'f' ? y.floor.flops_ns : y.floor.bytes_ns);
  runner.status = Status::implausible;
  runner.reason = text;
}

bool is_comparable(const RunnerResult& runner, const Measurement& m) {
  return runner.status == Status::ok && !m.below_resolution;
}

Baseline baseline_named(const std::string& name) {
  for (const Baseline baseline : {Baseline::loop, Baseline::streams, Baseline::graph}) {
    if (name == to_string(baseline)) return baseline;
  }
  return Baseline::loop;
}

Speedup speedup_of(const RunnerResult& strategy, const Measurement& mine,
                   const RunnerResult& baseline, const Measurement& theirs, uint64_t seed) {
  Speedup speedup;
  speedup.strategy = strategy.name;
  speedup.baseline = baseline_named(baseline.name);
  speedup.regime = mine.regime;
  speedup.verdict = "not_comparable";
  if (!is_comparable(strategy, mine) || !is_comparable(baseline, theirs)) return speedup;
  const auto ratio = paired_ratio(round_medians(theirs.samples_ns, theirs.samples_round),
                                  round_medians(mine.samples_ns, mine.samples_round), seed);
  if (!ratio) return speedup;
  speedup.pairs = ratio->pairs;
  speedup.speedup_ratio = ratio->value;
  speedup.ci_lo = ratio->interval.lo;
  speedup.ci_hi = ratio->interval.hi;
  speedup.verdict = verdict_of(*ratio);
  return speedup;
}

int severity(Status status) {
  switch (status) {
    case Status::ok:
    case Status::skipped:
      return 0;
    case Status::timeout:
      return 1;
    case Status::oom:
      return 2;
    case Status::failed:
      return 3;
    case Status::implausible:
      return 4;
    case Status::verify_failed:
      return 5;
  }
  return 0;
}

}  // namespace

void evaluate(RunnerResult& runner, const Yardstick& y) {
  for (Measurement& m : runner.measurements) {
    m.stats = describe_samples(m.samples_ns, y.seed);
    m.few_samples = m.stats.n < kReliableSamples;
    if (m.stats.n == 0) continue;
    const double time_ns = m.stats.median_ns;
    // The clock is read once per sample, whose calls are many where one is short.
    m.below_resolution =
        !(time_ns * static_cast<double>(m.iters_per_sample) >= kResolution * y.timer_floor_ns);
    if (!(time_ns > 0)) continue;
    m.flops_per_s = y.cost.flops / (time_ns * 1e-9);
    m.mem_bw_bytes_per_s = y.cost.bytes() / (time_ns * 1e-9);
    m.pct_of_floor = 100 * y.floor.total_ns() / time_ns;
    judge_plausibility(runner, m, y);
  }
}

std::vector<Speedup> find_speedups(std::span<const RunnerResult> strategies,
                                   std::span<const RunnerResult> baselines, uint64_t seed) {
  std::vector<Speedup> speedups;
  for (const RunnerResult& strategy : strategies) {
    for (const RunnerResult& baseline : baselines) {
      for (const Measurement& mine : strategy.measurements) {
        for (const Measurement& theirs : baseline.measurements) {
          if (mine.regime == theirs.regime)
            speedups.push_back(speedup_of(strategy, mine, baseline, theirs, seed));
        }
      }
    }
  }
  return speedups;
}

void settle_status(CaseResult& result) {
  for (const auto* group : {&result.strategies, &result.baselines}) {
    for (const RunnerResult& runner : *group) {
      if (severity(runner.status) <= severity(result.status)) continue;
      result.status = runner.status;
      result.reason = runner.name + ": " + runner.reason;
    }
  }
  const bool all_skipped =
      std::all_of(result.strategies.begin(), result.strategies.end(),
                  [](const RunnerResult& strategy) { return strategy.status == Status::skipped; });
  if (result.status != Status::ok || !all_skipped) return;
  result.status = Status::skipped;
  result.reason = result.strategies.empty()
                      ? "no strategy runs on this device"
                      : result.strategies.front().name + ": " + result.strategies.front().reason;
}

}  // namespace wide::bench
