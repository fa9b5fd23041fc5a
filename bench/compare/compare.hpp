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

#include "bench/compare/gate.hpp"
#include "bench/result.hpp"
#include "bench/statistics/ranks.hpp"

namespace wide::bench {

struct CompareOptions {
  const Metric* metric = nullptr;
  double threshold_pct = 1.5;
  double alpha = 0.01;
  bool adjusts_p = true;                  ///< by Benjamini and Hochberg
  std::optional<double> noise_floor_pct;  ///< none: what the runs show
};

/// On the logarithms of the runs, and none below kMinRuns. The test that suits them is chosen:
/// Mann-Whitney where either side is not normal (Shapiro-Wilk below 5 %), else Welch where
/// variances differ (Brown-Forsythe below 5 %), else Student.
struct CellTests {
  std::optional<Test> levene;
  std::string_view chosen;  ///< "student", "welch" or "mwu"
  double statistic = 0, p = 1, p_adjusted = 1;
  std::optional<double> cohens_d, hedges_g;
  double rank_biserial = 0;
};

struct ComparedCell {
  std::string case_id, op, point, strategy, reproduce;
  Regime regime = Regime::stream;
  std::optional<double> base, candidate;  ///< medians over runs
  int64_t base_runs = 0, candidate_runs = 0;
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
};

/// What a strategy that ran on neither side has is no cell. A cell is INVALID where it failed, was
/// wrong or implausible, or was below the timer's resolution in any run; MISSING and NEW where one
/// side has it in no run.
Comparison compare(std::span<const RunResult> base, std::span<const RunResult> candidate,
                   const CompareOptions& options);

/// Devices of all runs, by all that tells them apart; several where runs differ.
std::string devices_of(std::span<const RunResult> runs);

}  // namespace wide::bench
