// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/document/doubts.hpp"
#include "bench/statistics/statistics.hpp"

namespace wide::bench {

namespace {

constexpr double kPlausible = 1.05;  // a clock may run slightly faster than reported
constexpr double kResolution = 5;    // samples below this many timer floors are noise

/// A part of the hardware that a call uses, and the minimum time for that.
struct Need {
  const char* part;
  double least_ns;
};

double least_ns(double amount, double per_second) {
  return per_second > 0 ? amount / per_second * 1e9 : 0;
}

/// Bytes that memory must deliver: none if a cache may hold them all, and for a cold call only
/// those read, since those written may stay in the cache.
double bytes_from_memory(const Yardstick& y, Regime regime) {
  if (y.outgrows_cache) return y.cost.bytes();
  return regime == Regime::cold ? y.cost.bytes_read : 0;
}

void judge_plausibility(RunnerResult& runner, const Measurement& m, const Yardstick& y) {
  if (runner.status != Status::ok) return;
  const Need needs[] = {
      {"flops", least_ns(y.cost.flops, y.peaks.flops_per_s)},
      {"bandwidth", least_ns(bytes_from_memory(y, m.regime), y.peaks.mem_bw_bytes_per_s)}};
  for (const Need& need : needs) {
    if (need.least_ns <= kPlausible * m.stats.median_ns) continue;
    runner.status = Status::implausible;
    runner.reason =
        fmt::format("regime {}: {:.0f} ns, but at the device's peak {} the work takes {:.0f} ns",
                    to_string(m.regime), m.stats.median_ns, need.part, need.least_ns);
    return;
  }
}

void flag_outliers(Measurement& m) {
  if (m.samples_flags.size() != m.samples_ns.size()) return;  // hand-made ones have no flags
  const Fences fences(sorted_copy(m.samples_ns));
  for (size_t i = 0; i < m.samples_ns.size(); ++i) {
    const int severity = fences.severity(m.samples_ns[i]);
    m.samples_flags[i] &= ~int64_t{kMildOutlier | kSevereOutlier};
    if (severity > 0) m.samples_flags[i] |= severity == 1 ? kMildOutlier : kSevereOutlier;
  }
}

bool is_comparable(const RunnerResult& runner, const Measurement& m) {
  return runner.status == Status::ok && !m.below_resolution;
}

Baseline baseline_of(const RunnerResult& runner) {
  if (!runner.peer.empty()) return Baseline::peer;
  for (const Baseline baseline : kOwnBaselines) {
    if (runner.name == to_string(baseline)) return baseline;
  }
  return Baseline::loop;
}

/// The baseline with the smallest median among those of other programs; null: none.
const RunnerResult* fastest_peer(std::span<const RunnerResult> baselines, Regime regime) {
  const RunnerResult* fastest = nullptr;
  double least_ns = 0;
  for (const RunnerResult& runner : baselines) {
    if (baseline_of(runner) != Baseline::peer) continue;
    for (const Measurement& m : runner.measurements) {
      if (m.regime != regime || m.samples_ns.empty() || !is_comparable(runner, m)) continue;
      const double median_ns = median(m.samples_ns);
      if (fastest != nullptr && !(median_ns < least_ns)) continue;
      fastest = &runner;
      least_ns = median_ns;
    }
  }
  return fastest;
}

Speedup speedup_of(const RunnerResult& strategy, const Measurement& mine,
                   const RunnerResult& baseline, const Measurement& theirs, uint64_t seed,
                   std::span<const NoiseFloor> floors, double level) {
  Speedup speedup;
  speedup.strategy = strategy.name;
  speedup.baseline = baseline_of(baseline);
  if (speedup.baseline == Baseline::peer) speedup.peer = baseline.name;
  speedup.regime = mine.regime;
  speedup.verdict = "not_comparable";
  if (!is_comparable(strategy, mine) || !is_comparable(baseline, theirs)) return speedup;
  const auto ratio = paired_ratio(round_medians(theirs.samples_ns, theirs.samples_round),
                                  round_medians(mine.samples_ns, mine.samples_round), seed, level);
  if (!ratio) return speedup;
  speedup.pairs = ratio->pairs;
  speedup.speedup_ratio = ratio->value;
  speedup.ci_lo = ratio->interval.lo;
  speedup.ci_hi = ratio->interval.hi;
  speedup.p_wilcoxon = ratio->p;
  for (const NoiseFloor& floor : floors) {
    if (floor.baseline == speedup.baseline && floor.regime == speedup.regime)
      speedup.aa_floor_pct = floor.floor_pct;
  }
  speedup.verdict = verdict_of(*ratio, speedup.aa_floor_pct.value_or(0) / 100);
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

std::string roofline_bound(const Yardstick& y) {
  const Floor& f = y.floor;
  const bool misses_flops = y.cost.flops > 0 && !(f.flops_ns > 0);
  const bool misses_bytes = y.cost.bytes() > 0 && !(f.bytes_ns > 0);
  if (misses_flops || misses_bytes || !(f.total_ns() > 0)) return "";
  if (f.launch_ns > std::max(f.bytes_ns, f.flops_ns)) return "launch";
  return f.flops_ns > f.bytes_ns ? "compute" : "memory";
}

void evaluate(RunnerResult& runner, const Yardstick& y) {
  for (Measurement& m : runner.measurements) {
    m.stats = describe_samples(m.samples_ns, m.samples_round, y.seed);
    m.few_samples = m.stats.n < kReliableSamples;
    if (m.stats.n == 0) continue;
    flag_outliers(m);
    const RoundMedians rounds = round_medians(m.samples_ns, m.samples_round);
    const auto count = static_cast<double>(rounds.rounds.back() - rounds.rounds.front() + 1);
    describe_rounds(rounds, m.walltime_s / count, m.stats);
    const double time_ns = m.stats.median_ns;
    // The clock is read once per sample, which consists of many calls if they are short.
    const auto iterations = static_cast<double>(m.iters_per_sample);
    m.below_resolution = !(time_ns * iterations >= kResolution * y.timer_floor_ns);
    m.stats.dip = dip_test(m.samples_ns, y.timer_quantum_ns / iterations);
    m.stats.doubts = doubts_of(m, y.config);
    if (!(time_ns > 0) || (m.regime == Regime::cpu && y.host_only_enqueues)) continue;
    m.flops_per_s = y.cost.flops / (time_ns * 1e-9);
    m.mem_bw_bytes_per_s = y.cost.bytes() / (time_ns * 1e-9);
    if (y.cost.items > 0) m.items_per_s = y.cost.items / (time_ns * 1e-9);
    m.pct_of_floor = 100 * y.floor.total_ns() / time_ns;
    if (y.floor.bytes_ns > 0) m.pct_of_mem_peak = 100 * y.floor.bytes_ns / time_ns;
    if (y.floor.flops_ns > 0) m.pct_of_flop_peak = 100 * y.floor.flops_ns / time_ns;
    m.roofline_bound = roofline_bound(y);
    judge_plausibility(runner, m, y);
  }
}

void find_launch_overhead(RunnerResult& runner, const RunnerResult& captured) {
  const int64_t launches = runner.launches_per_call.value_or(0);
  if (launches < 1) return;
  for (Measurement& stream : runner.measurements) {
    if (stream.regime != Regime::stream || stream.stats.n == 0 || !is_comparable(runner, stream))
      continue;
    for (const Measurement& graph : captured.measurements) {
      if (graph.regime != Regime::graph || graph.stats.n == 0 || !is_comparable(captured, graph))
        continue;
      stream.launch_overhead_ns_per_launch =
          (stream.stats.median_ns - graph.stats.median_ns) / static_cast<double>(launches);
    }
  }
}

std::vector<NoiseFloor> find_noise_floors(const RunnerResult& baseline, const RunnerResult& again,
                                          uint64_t seed) {
  std::vector<NoiseFloor> floors;
  for (const Measurement& one : baseline.measurements) {
    for (const Measurement& other : again.measurements) {
      if (one.regime != other.regime || !is_comparable(baseline, one) ||
          !is_comparable(again, other))
        continue;
      const auto ratio = paired_ratio(round_medians(one.samples_ns, one.samples_round),
                                      round_medians(other.samples_ns, other.samples_round), seed);
      if (!ratio) continue;
      const double reach = std::max(ratio->interval.hi, 1 / ratio->interval.lo) - 1;
      floors.push_back({baseline_of(baseline), one.regime, ratio->pairs, ratio->value,
                        ratio->interval.lo, ratio->interval.hi, 100 * std::max(0.0, reach)});
    }
  }
  return floors;
}

std::vector<Speedup> find_speedups(std::span<const RunnerResult> strategies,
                                   std::span<const RunnerResult> baselines, uint64_t seed,
                                   std::span<const NoiseFloor> floors, double level) {
  std::map<Regime, const RunnerResult*> fastest;
  for (const Regime regime : kRegimes) fastest[regime] = fastest_peer(baselines, regime);
  std::vector<Speedup> speedups;
  for (const RunnerResult& strategy : strategies) {
    for (const RunnerResult& baseline : baselines) {
      const bool is_peer = baseline_of(baseline) == Baseline::peer;
      for (const Measurement& mine : strategy.measurements) {
        if (is_peer && fastest.at(mine.regime) != &baseline) continue;
        for (const Measurement& theirs : baseline.measurements) {
          if (mine.regime == theirs.regime)
            speedups.push_back(speedup_of(strategy, mine, baseline, theirs, seed, floors, level));
        }
      }
    }
  }
  return speedups;
}

void settle_status(CaseResult& result) {
  for (const auto* group : {&result.strategies, &result.baselines}) {
    for (const RunnerResult& runner : *group) {
      if (!runner.peer.empty() || severity(runner.status) <= severity(result.status)) continue;
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
