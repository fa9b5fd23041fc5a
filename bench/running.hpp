// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the commands that run cases have in common.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "bench/commands.hpp"
#include "bench/metrics.hpp"
#include "bench/runner.hpp"

namespace wide::bench {

/// "0.5%" as 0.5; throws invalid_argument outside (0, 100). `words` are what else the option takes,
/// for its message: "runs, none or ".
double parse_percent(const std::string& option, const std::string& text,
                     const std::string& words = "");

/// A threshold of this metric, in percent, from a list: "5%" is of all metrics, "time_ns=2%" of
/// one, which goes before it; a metric that the list says nothing of has the usual one. Throws
/// invalid_argument for a metric that nothing is measured of, and for what is there twice.
double parse_threshold(const std::string& text, const Metric& metric);

/// The context's device as results have it, and what its driver says of its state.
RunDevice device_of(const Context& context);

/// None where the device asked for is not usable, which is said on `err`.
std::optional<Context> make_context(const Selection& selection, std::ostream& err);

/// A line that is written over and over, or with -v a line each.
void set_progress(const GlobalOptions& global, std::ostream& err, RunPlan& plan);

/// Runs the plan. What it throws is not the caller's mistake, whatever its code; false then.
bool run_guarded(const RunPlan& plan, RunResult& result, std::ostream& err);

/// Says on `err` why nothing was selected, and which points are impossible.
void report_nothing(const std::string& nothing, const RunResult& result, std::ostream& err);

}  // namespace wide::bench
