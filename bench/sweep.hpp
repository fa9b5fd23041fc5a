// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The cases of a plan one after another, whoever runs them: this process or one of each case's own.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "bench/runner.hpp"

namespace wide::bench {

/// A case whose turn it is.
struct Turn {
  const catalog::PrimitiveSpec& spec;
  const catalog::Case& point;
  std::optional<double> budget_s;  ///< its share of the plan's
};

/// A case that failed, ran out of memory or time, was wrong or implausible.
bool is_error(const CaseResult& result);

/// Sleeps, but an interrupt ends it.
void pause_for(double seconds);

class Sweep {
 public:
  /// The sweep begins, and its clock.
  Sweep(const RunPlan& plan, RunResult& result);

  /// Says what begins; "" at the end.
  void report(const std::string& next) const;

  /// Cases of the plan in their order, each by `run_turn` but for those that cannot be, with the
  /// plan's pause between them; ends where it returns none, an interrupt came, or after the first
  /// case in error where the plan says so. Fills cases, summaries, `complete` and the duration.
  void run(const std::function<std::optional<CaseResult>(const Turn&)>& run_turn);

  /// The plan's device as it is now.
  Calibration measure_ceilings() const;
  /// Measures ceilings again after a complete sweep that was not short, where the budget leaves the
  /// time and the first ones were its own; a warning into the result where they have moved.
  void check_ceilings() const;

 private:
  double elapsed_s() const;
  void cool_down() const;
  std::optional<double> budget_s() const;

  const RunPlan& plan_;
  RunResult& result_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t total_ = 0, done_ = 0;
};

}  // namespace wide::bench
