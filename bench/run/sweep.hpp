// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Runs the cases of a plan one after another, in this process or each in a process of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/machine/calibrate.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

/// A case that is to be run now.
struct Turn {
  const catalog::PrimitiveSpec& spec;
  const catalog::Case& point;
  std::optional<double> budget_s;  ///< its share of the plan's
};

/// Whether a case failed, ran out of memory or time, was wrong or implausible.
bool is_error(const CaseResult& result);

/// Sleeps this long, or until an interrupt.
void pause_for(double seconds);

class Sweep {
 public:
  /// Starts the sweep and its clock.
  Sweep(const RunPlan& plan, RunResult& result);

  /// Reports what begins; "" at the end.
  void report(const std::string& next) const;

  /// Runs the plan's cases in order by `run_turn`, except impossible ones, with the plan's pause
  /// between them; ends if it returns none, on an interrupt, or after the first
  /// case in error if the plan says so. Fills cases, summaries, `complete` and the duration.
  void run(const std::function<std::optional<CaseResult>(const Turn&)>& run_turn);

  /// Measures the plan's device before the first case. On the CPU that is the first window of
  /// several: judged_ceilings() and check_ceilings() add others.
  Calibration first_ceilings();
  /// The ceilings to judge a case by that has been timed: on the CPU the highest so far, of one
  /// more window if this is the first case, or the last window lies some time back.
  const Calibration& judged_ceilings();
  /// Measures ceilings again, if the sweep measured the first ones itself and the budget leaves
  /// time, raises the result's, and adds a warning if they have moved. On the CPU, where it takes a
  /// sixth of a second, also after a short or interrupted sweep (not with --isolate).
  void check_ceilings();

 private:
  double elapsed_s() const;
  bool has_own_ceilings() const;
  bool has_time_to_measure() const;
  Calibration measure_ceilings();
  void cool_down() const;
  std::optional<double> budget_s() const;

  const RunPlan& plan_;
  RunResult& result_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t total_ = 0, done_ = 0;
  double measuring_s_ = 1;  ///< what ceilings take; a guess until this sweep has measured them
  bool has_windows_ = false;
  int num_windows_ = 0;
  double last_window_s_ = 0;              ///< when it ended
  std::unique_ptr<CpuCeilings> windows_;  ///< made for the first one
};

}  // namespace wide::bench
