// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The outcome of a suite: of every entry its cases, thresholds and speedups, and their statistics
// over all. The results themselves are separate documents (suite_result.schema.json names
// them), so that every reader of results reads these.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/suite/suite.hpp"

namespace wide::bench {

/// Of the fastest strategy of every case, geometric mean and extremes.
struct SpeedupStatistics {
  int64_t cases = 0;
  double log_sum = 0, least = 0, largest = 0;
  void add(double ratio);
  void add(const SpeedupStatistics& other);
  double geomean() const;
};
using Speedups = std::map<std::pair<Regime, Baseline>, SpeedupStatistics>;
Speedups speedups_of(const RunResult& result);

struct EntryOutcome {
  SuiteEntry entry;
  int exit_code = 0;
  bool has_run = false;  ///< false: an interrupt came first
  std::string message;   ///< why it was refused; empty if it was not
  double duration_s = 0;
  std::string run_id, file;  ///< of its result; empty if there is none
  std::map<Status, int64_t> cases;
  int64_t impossible = 0;
  Speedups speedups;
  std::vector<ThresholdOutcome> thresholds;  ///< as the entry's
};
/// `code` is the run's exit code; a missed threshold makes it 4, an undecided one 5 if
/// `is_strict`, unless it is worse already.
EntryOutcome outcome_of(const SuiteEntry& entry, const RunResult& result, int code, bool is_strict);

struct SuiteOutcome {
  std::string name, source, started;
  double duration_s = 0;
  bool complete = false;  ///< no interrupt came
  std::vector<EntryOutcome> entries;
  int exit_code() const;  ///< the worst of its entries'
};

/// A table of the entries, the missed thresholds, and a one-line total.
std::string suite_text(const SuiteOutcome& outcome, int width, bool has_color);
/// A document "wbench.suite_result", version 1.0.0.
std::string suite_json(const SuiteOutcome& outcome);

}  // namespace wide::bench
