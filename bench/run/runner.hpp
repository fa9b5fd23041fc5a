// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Runs a sweep: calibration, cases one after another, summaries. Knows no primitive.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/document/saved_workspace.hpp"
#include "bench/nvml/monitor.hpp"
#include "wide/catalog.hpp"
#include "wide/tuning.hpp"

namespace wide::bench {

class Peer;

struct Progress {
  int64_t done = 0, total = 0;  ///< cases
  double elapsed_s = 0;
  std::string next;  ///< the case that begins; empty at the end
};

struct RunPlan {
  explicit RunPlan(const Context& context_) : context(context_) {}

  Context context;
  std::string command = "run";  ///< of wbench that runs a case alone: run or verify
  RunConfig config;
  std::vector<std::pair<const catalog::PrimitiveSpec*, std::vector<catalog::Case>>> work;
  std::vector<std::string> strategies;  ///< "simt", "simt:m16n64"; empty: all of the device
  const TuningCache* tuning = nullptr;  ///< for "auto"
  std::vector<Baseline> baselines;
  std::vector<Peer*> peers;  ///< other programs, measured beside the baselines
  bool verify_only = false;
  bool compares_all = false;     ///< of outputs; else a sample of rows if all would take long
  SavingRule saving;             ///< which checked calls to save
  std::string reproduce_suffix;  ///< appended to the cases' commands: what is not in their axes
  bool exits_on_error = false;   ///< stop after the first case that fails or is wrong
  std::vector<std::string> isolating_command;  ///< this run's words, if cases are to be isolated
  int64_t profiled_calls = 0;                  ///< calls made for a profiler, without timing
  bool profiles_graph = false, profiles_endlessly = false;  ///< as replays; until interrupted
  std::optional<Calibration> calibration;                   ///< none: measured first
  /// Empty: calibrate() of calibrate.hpp.
  std::function<Calibration(double l2_factor)> measure_ceilings;
  double ceilings_hold_s =
      2;  ///< after longer sweeps they are measured again; infinity: never, nor in windows
  Monitor* monitor = nullptr;  ///< of the device's clocks; null: NVML's, on CUDA
  std::function<void(const Progress&)> on_progress;  ///< may be empty
  /// Called with each strategy or baseline whose check has ended: of large cases it takes seconds.
  std::function<void(const std::string&)> on_check_ended;  ///< may be empty
  /// Called with the run before its first case; may be empty.
  std::function<void(const RunResult&)> on_start;
  /// Called with the case and one of its strategies or baselines as soon as it has been timed,
  /// before the case's last checks; may be empty.
  std::function<void(const CaseResult&, const RunnerResult&)> on_timed;
  /// Called with the run so far, and the case that just completed; may be empty.
  std::function<void(const RunResult&, CaseResult&)> on_case;

  int64_t num_cases() const {
    int64_t count = 0;
    for (const auto& [spec, cases] : work) count += static_cast<int64_t>(cases.size());
    return count;
  }
};

/// Fills calibration, cases, summaries and `complete`. A case that throws fails, not the sweep;
/// after a CUDA error the device is no longer trusted, and the remaining cases fail with its
/// message.
void run_plan(const RunPlan& plan, RunResult& result);

/// A case with the reason why it was not run.
CaseResult case_not_run(const RunPlan& plan, const catalog::PrimitiveSpec& spec,
                        const catalog::Case& point, Status status, const std::string& reason);

/// "simt:m16n64" as its strategy and policy.
PlanOptions plan_options(const std::string& name);

/// "wbench run --op linear --n 4 ..", with every axis; `command` is "run" or "verify".
std::string reproduce_command(const catalog::Case& point, const std::string& command);

}  // namespace wide::bench
