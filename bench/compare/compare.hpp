// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two sets of results, cell by cell. The gate (gate.hpp) alone decides; tests, their p adjusted
// over the sweep, and effect sizes stand beside it as information.
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
/// or "cpu".
struct DevicePair {
  std::string base, candidate;
};

struct CompareOptions {
  const Metric* metric = nullptr;
  double threshold_pct = 1.5;
  double alpha = 0.01;
  bool adjusts_p = true;  ///< by Benjamini and Hochberg
  CompareMethod method = CompareMethod::automatic;
  double min_effect_pct = 0;
  std::optional<double> noise_floor_pct{};  ///< none: what the runs show
  /// Whose noise is the floor of the cells that it has three runs of.
  std::optional<std::vector<HistorySeries>> history{};
  std::vector<DevicePair> device_pairs{};  ///< empty: all runs of both sides are compared
};

struct ComparedCell {
  /// One side's.
  struct Runs {
    std::optional<double> median{};  ///< over runs
    std::optional<Interval> ci{};    ///< 95 %, of the geometric mean over runs, from kMinRuns
    int64_t count = 0;
  };
  std::string case_id, op, point, strategy, reproduce;
  std::vector<catalog::Case::Entry> axes;
  Regime regime = Regime::stream;
  size_t device_pair = 0;  ///< of the options', where there are any
  Runs base, candidate;
  double noise_floor_pct = 0;
  bool has_history_floor = false;  ///< else the comparison's
  Judgement judgement;
  std::optional<CellTests> tests;
};

struct Comparison {
  CompareOptions options;
  double noise_floor_pct = 0;
  std::vector<std::string> base_ids, candidate_ids;  ///< of runs
  std::string base_device, candidate_device;
  std::vector<ComparedCell> cells;           ///< in the order of the base, then what is new
  std::optional<double> geomean_change_pct;  ///< over cells that both sides have
  int64_t count(Verdict verdict) const;
  /// Sides of different devices that nobody paired.
  bool has_device_mismatch() const;
  /// "linear n=4 ..", and which devices where they are paired: "(0:1)".
  std::string label(const ComparedCell& cell) const;
};

/// What a strategy that ran on neither side has is no cell. A cell is INVALID where it failed, was
/// wrong or implausible, or was below the timer's resolution in any run; MISSING and NEW where one
/// side has it in no run. Throws invalid_argument for a device pair that no run is of.
Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options);

/// Devices of all runs, by all that tells them apart; several where runs differ.
std::string devices_of(std::span<const RunResult> runs);

}  // namespace wide::bench
