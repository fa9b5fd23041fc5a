// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How a comparison is presented, and its exit code.
#pragma once

#include <string>

#include "bench/compare/compare.hpp"

namespace wide::bench {

/// The findings that --fail-on names.
struct FailOn {
  bool regression = true, missing = false, invalid = true, inconclusive = false,
       device_mismatch = false, unreliable = false;
};

/// "regression,missing,invalid,inconclusive,unreliable,device-mismatch" or "none". Throws
/// invalid_argument with the nearest names.
FailOn parse_fail_on(const std::string& names);

/// Whether --fail-on names this cell's verdict, or that it is unreliable.
bool is_tripped(const ComparedCell& cell, const FailOn& fail_on);

/// 4 if a verdict or a device mismatch counts as failure, 5 if only inconclusive or unreliable
/// cells do, 6 if no cell is on both sides, else 0.
int exit_code_of(const Comparison& comparison, const FailOn& fail_on);

struct CompareView {
  int width = 120;
  bool has_color = false;
  bool shows_all = false;  ///< also cells that are the SAME
  bool explains = false;   ///< the command that measures each cell shown
};

std::string compare_text(const Comparison& comparison, const CompareView& view);
std::string compare_markdown(const Comparison& comparison, const CompareView& view);
/// A document "wbench.compare", version 1.8.0.
std::string compare_json(const Comparison& comparison, const FailOn& fail_on);
/// Cells as test cases; those that --fail-on names have failed, undecidable ones were skipped.
std::string compare_junit(const Comparison& comparison, const FailOn& fail_on);
/// Workflow commands: errors for what --fail-on names, else warnings and notices.
std::string compare_github(const Comparison& comparison, const FailOn& fail_on);

/// "12.3 us", "4.81 TB/s", "61.5 %", by the metric.
std::string format_metric(const Metric& metric, double value);
/// "+5.1% [3.9%, 6.4%]"; without the interval if there is none.
std::string change_text(const Judgement& judgement);
/// "48 cells: 46 SAME, 2 SLOWER; ..", one line.
std::string summary_line(const Comparison& comparison);

}  // namespace wide::bench
