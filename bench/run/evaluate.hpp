// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From samples to the contents of a row: statistics, rates, plausibility, speedups, case status.
// Pure functions of plain data, so that they are tested with hand-made samples.
#pragma once

#include <span>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/machine/calibrate.hpp"
#include "bench/machine/peaks.hpp"
#include "bench/statistics/intervals.hpp"

namespace wide::bench {

/// What a case's measurements are judged by.
struct Yardstick {
  catalog::Cost cost;
  Floor floor;
  double timer_floor_ns = 0;
  /// What a call touches is at least four times the last-level cache, so it cannot have stayed
  /// there, and bandwidth is a limit. False where the cache's size is unknown.
  bool outgrows_cache = false;
  uint64_t seed = 1;
  double timer_quantum_ns = 0;
  Peaks peaks;
  /// In regime cpu only the host's time to enqueue is measured, which says nothing of the device.
  bool host_only_enqueues = false;
  RunConfig config = {};  ///< what was asked for
};

/// Which part of the floor is the largest: "memory", "compute" or "launch"; empty where a ceiling
/// that the work needs is unknown.
std::string roofline_bound(const Yardstick& yardstick);

/// Stores what a launch by the host adds to the device's time in the runner's measurement of regime
/// stream: that time minus the time of `captured` in regime graph, which is the runner itself, or
/// for `loop` the baseline `graph`, which replays its calls. Stores nothing if either was not
/// timed, is not ok or is below the timer's resolution, or if launches are unknown.
void find_launch_overhead(RunnerResult& runner, const RunnerResult& captured);

/// From the same baseline run under two names, for each regime that both have.
std::vector<NoiseFloor> find_noise_floors(const RunnerResult& baseline, const RunnerResult& again,
                                          uint64_t seed);

/// Fills statistics, rates and flags. A runner that was ok and is faster than the device's
/// peaks allow becomes implausible. Throws for samples that are not valid times.
void evaluate(RunnerResult& runner, const Yardstick& yardstick);

/// One entry for every strategy's measurement and every baseline timed in the same regime; of
/// other programs, the fastest. Only
/// runners that are ok and above the timer's resolution get a ratio. A verdict has to exceed the
/// noise floor of its baseline and regime. Intervals are of that level; results hold 95 % ones.
std::vector<Speedup> find_speedups(std::span<const RunnerResult> strategies,
                                   std::span<const RunnerResult> baselines, uint64_t seed,
                                   std::span<const NoiseFloor> floors = {}, double level = kLevel);

/// Sets status and reason from those of strategies and baselines: a case is as bad as its worst
/// runner, except other programs'. Runners that cannot run here do not count, unless they are all
/// the strategies.
void settle_status(CaseResult& result);

}  // namespace wide::bench
