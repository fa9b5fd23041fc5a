// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared code of the commands that run cases.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "bench/command/options.hpp"
#include "bench/document/metrics.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

/// Parses "0.5%" as 0.5; throws invalid_argument outside (0, 100). `words` names what else the
/// option accepts, for its message: "runs, none or ".
double parse_percent(const std::string& option, const std::string& text,
                     const std::string& words = "");

/// This metric's threshold, in percent, from a list: "5%" applies to all metrics, "time_ns=2%" to
/// one and takes precedence; a metric that the list does not mention has the default. Throws
/// invalid_argument for an unknown metric, and for duplicates.
double parse_threshold(const std::string& text, const Metric& metric);

/// The context's device as stored in results, with its state as reported by its driver.
RunDevice device_of(const Context& context);

/// None if the requested device is not usable, which is reported on `err`.
std::optional<Context> make_context(const Selection& selection, std::ostream& err);

/// A line that is overwritten repeatedly, or with -v a line for each case.
void set_progress(const GlobalOptions& global, std::ostream& err, RunPlan& plan);

/// Runs the plan. Reports any exception as a run-time error, whatever its code; then returns false.
bool run_guarded(const RunPlan& plan, RunResult& result, std::ostream& err);

/// Reports on `err` why nothing was selected, and which points are impossible.
void report_nothing(const std::string& nothing, const RunResult& result, std::ostream& err);

}  // namespace wide::bench
