// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Compares two sets of results cell by cell. Only the gate (gate.hpp) decides; tests that suit a
// cell's runs and effect sizes are added as information.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/cell_tests.hpp"
#include "bench/compare/gate.hpp"
#include "bench/document/result.hpp"
#include "bench/history/history.hpp"

namespace wide::bench {

/// Results of device `base` against those of device `candidate`: by name, by ordinal among CUDA's,
/// by UUID or its beginning, or "cpu".
struct DevicePair {
  std::string base, candidate;
};

struct CompareOptions {
  const Metric* metric = nullptr;
  double threshold_pct = kThreshold_pct;
  double alpha = 0.01;    ///< upper bound for the gate's p, and for the tests'
  bool adjusts_p = true;  ///< adjusts both, by Benjamini and Hochberg
  CompareMethod method = CompareMethod::automatic;
  double min_effect_pct = 0;
  std::optional<double> noise_floor_pct{};  ///< none: derived from the runs
  /// The noise floors of cells that it has three or more runs of.
  std::optional<std::vector<HistorySeries>> history{};
  std::vector<DevicePair> device_pairs{};  ///< empty: all runs of both sides are compared
};

/// The reason of a cell that is INVALID because its cold calls used different methods.
inline constexpr std::string_view kMeasuredOtherwise = "measured_otherwise";
/// That of one whose runs count other operations or bytes.
inline constexpr std::string_view kOtherWork = "other_work";
/// That of a cell of few runs which is AMBIGUOUS because a run is unreliable.
inline constexpr std::string_view kDoubtedRanges = "doubts";

struct ComparedCell {
  /// The runs of one side.
  struct Runs {
    std::optional<double> median{};  ///< over runs
    /// What change_pct compares and tables show, so that values agree with the change's sign.
    std::optional<double> geometric_mean{};
    std::optional<Interval> ci{};        ///< 95 %, of geometric_mean, from kMinRuns
    int64_t count = 0;                   ///< runs of one process count as one
    std::vector<std::string> doubts{};   ///< of any run, by their names in doubts.hpp
    std::vector<std::string> methods{};  ///< of cold calls: cold_method(); several: incomparable
    std::vector<std::string> works{};    ///< what its calls do; several: incomparable
    bool is_unchecked = false;           ///< no check saw the outputs of a run
  };
  std::string case_id, op, point, strategy, reproduce;
  std::vector<catalog::Case::Entry> axes;
  Regime regime = Regime::stream;
  size_t device_pair = 0;  ///< index into the options' pairs, if there are any
  Runs base, candidate;
  std::optional<double> noise_floor_pct{};
  bool has_history_floor = false;  ///< otherwise it is the comparison's floor
  std::optional<double> p{};       ///< the gate's: change_p_values()
  Judgement judgement;
  std::optional<CellTests> tests;
  /// A run of either side was unreliable: its median says less than the verdict does.
  bool is_unreliable() const { return !base.doubts.empty() || !candidate.doubts.empty(); }
};

struct Comparison {
  CompareOptions options;
  std::optional<double> noise_floor_pct;             ///< none: not given, not seen in the runs
  std::vector<std::string> base_ids, candidate_ids;  ///< of runs
  std::string base_device, candidate_device;
  int64_t base_processes = 0, candidate_processes = 0;   ///< count_processes()
  std::vector<std::string> base_units, candidate_units;  ///< UUIDs of devices, where known
  std::vector<std::string> notes;   ///< other differences between the sides than speed: notes_of()
  std::vector<ComparedCell> cells;  ///< in the order of the base, then the new ones
  std::optional<double> geomean_change_pct;  ///< over cells that both sides have
  int64_t count(Verdict verdict) const;
  /// Number of cells with an unreliable run.
  int64_t count_unreliable() const;
  /// The sides have different devices without a device pair that maps them.
  bool has_device_mismatch() const;
  /// The sides have the same model but different units, which is not a device mismatch.
  bool has_other_units() const;
  /// "linear n=4 ..", followed by the devices if they are paired: "(0:1)".
  std::string label(const ComparedCell& cell) const;
};

/// A strategy that ran on neither side makes no cell. A cell is INVALID if it failed, was wrong or
/// implausible, or was below the timer's resolution in any run, or if in not all runs its cold
/// calls were made cold by the same method, or its work was the same; MISSING and NEW if one side
/// has it in no run. Runs of one process count as one, with their geometric mean. Throws
/// invalid_argument for a device pair that matches no run.
Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options);

/// How many processes measured these runs. Runs of one process share its addresses, its allocations
/// and the state in which it found the machine: however often it repeats a sweep, its runs differ
/// by less than they would differ from those of another process.
int64_t count_processes(std::span<const RunResult> runs);

/// Processes that measured runs of both sides.
std::set<std::string> shared_processes(std::span<const RunResult> base,
                                       std::span<const RunResult> candidate);

/// UUIDs of all runs' devices, sorted.
std::vector<std::string> units_of(std::span<const RunResult> runs);

/// Devices of all runs, by all that distinguishes them; several if runs differ.
std::string devices_of(std::span<const RunResult> runs);

}  // namespace wide::bench
