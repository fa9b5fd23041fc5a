// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two sets of results, cell by cell. The gate (gate.hpp) alone decides; the tests that suit a
// cell's runs and effect sizes stand beside it as information.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/cell_tests.hpp"
#include "bench/compare/gate.hpp"
#include "bench/history/history.hpp"
#include "bench/result.hpp"

namespace wide::bench {

/// Results of device `base` against those of device `candidate`: by name, by ordinal among CUDA's,
/// by UUID or its beginning, or "cpu".
struct DevicePair {
  std::string base, candidate;
};

struct CompareOptions {
  const Metric* metric = nullptr;
  double threshold_pct = kThreshold_pct;
  double alpha = 0.01;    ///< what the gate's p, and the tests', must be below
  bool adjusts_p = true;  ///< both, by Benjamini and Hochberg
  CompareMethod method = CompareMethod::automatic;
  double min_effect_pct = 0;
  std::optional<double> noise_floor_pct{};  ///< none: what the runs show
  /// Whose noise is the floor of the cells that it has three runs of.
  std::optional<std::vector<HistorySeries>> history{};
  std::vector<DevicePair> device_pairs{};  ///< empty: all runs of both sides are compared
};

/// The reason of a cell that is INVALID because its cold calls were not cold in the same way.
inline constexpr std::string_view kMeasuredOtherwise = "measured_otherwise";

struct ComparedCell {
  /// One side's.
  struct Runs {
    std::optional<double> median{};  ///< over runs
    /// What change_pct compares, and people are shown: what stands beside a change has its sign.
    std::optional<double> geometric_mean{};
    std::optional<Interval> ci{};        ///< 95 %, of geometric_mean, from kMinRuns
    int64_t count = 0;                   ///< those of one process are one
    std::vector<std::string> doubts{};   ///< of any run, by names of doubts.hpp
    std::vector<std::string> methods{};  ///< of cold calls: cold_method(); one, or not comparable
  };
  std::string case_id, op, point, strategy, reproduce;
  std::vector<catalog::Case::Entry> axes;
  Regime regime = Regime::stream;
  size_t device_pair = 0;  ///< of the options', where there are any
  Runs base, candidate;
  std::optional<double> noise_floor_pct{};
  bool has_history_floor = false;  ///< else the comparison's
  std::optional<double> p{};       ///< of the gate: change_p_values()
  Judgement judgement;
  std::optional<CellTests> tests;
  /// A run of either side was unreliable: its median says less than the verdict does.
  bool is_unreliable() const { return !base.doubts.empty() || !candidate.doubts.empty(); }
};

struct Comparison {
  CompareOptions options;
  std::optional<double> noise_floor_pct;             ///< none: neither given nor seen in the runs
  std::vector<std::string> base_ids, candidate_ids;  ///< of runs
  std::string base_device, candidate_device;
  int64_t base_processes = 0, candidate_processes = 0;   ///< count_processes()
  std::vector<std::string> base_units, candidate_units;  ///< UUIDs of devices, as far as known
  std::vector<std::string> notes;   ///< what else than speed the sides differ in: notes_of()
  std::vector<ComparedCell> cells;  ///< in the order of the base, then what is new
  std::optional<double> geomean_change_pct;  ///< over cells that both sides have
  int64_t count(Verdict verdict) const;
  /// Cells of which a run is unreliable.
  int64_t count_unreliable() const;
  /// Sides of different devices that nobody paired.
  bool has_device_mismatch() const;
  /// Sides of the same model, but not of the same units: what they differ in is no mismatch.
  bool has_other_units() const;
  /// "linear n=4 ..", and which devices where they are paired: "(0:1)".
  std::string label(const ComparedCell& cell) const;
};

/// What a strategy that ran on neither side has is no cell. A cell is INVALID where it failed, was
/// wrong or implausible, or was below the timer's resolution in any run, or where its cold calls
/// were not cold in the same way in all runs; MISSING and NEW where one side has it in no run. Runs
/// of one process are one, of their geometric mean. Throws invalid_argument for a device pair that
/// no run is of.
Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options);

/// How many processes measured these runs. Those of one have its addresses and its allocations in
/// common, and the state in which it found the machine: however often it repeats a sweep, what its
/// runs differ by is less than what they would differ by in the next process.
int64_t count_processes(std::span<const RunResult> runs);

/// UUIDs of all runs' devices, sorted.
std::vector<std::string> units_of(std::span<const RunResult> runs);

/// Devices of all runs, by all that tells them apart; several where runs differ.
std::string devices_of(std::span<const RunResult> runs);

}  // namespace wide::bench
