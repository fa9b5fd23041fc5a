// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result flattened to one row per case, strategy or baseline, and regime, as all formats show it.
#pragma once

#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

struct ReportRow {
  const CaseResult* point = nullptr;
  const RunnerResult* runner = nullptr;
  const Measurement* measurement = nullptr;  ///< null if nothing was timed
  bool is_baseline = false;
  const Speedup* speedups[4] = {};  ///< by Baseline; null for baselines and if there is none
  bool opens_case = false;          ///< the first row of its case
  bool opens_runner = true;         ///< the first row of its strategy or baseline
};

/// In the order of the result; baselines before strategies.
std::vector<ReportRow> rows_of(const RunResult& result);

/// The ops, "linear", .., in the order of the result.
std::vector<std::string> ops_of(const RunResult& result);

/// The strategy's name, or in brackets a baseline's, which a strategy could have as well.
std::string runner_text(const ReportRow& row);
/// The reason of the strategy or baseline; of the case if it has none, or if the case failed before
/// this one was run.
Status status_of(const ReportRow& row);
/// "ok", "unverified", "few_samples", "unreliable", "below_resolution", "VERIFY FAILED", "skipped:
/// reason", ..
std::string status_text(const ReportRow& row);
/// "0.31 @3": worst error ratio and its member; empty if nothing was compared.
std::string error_text(const RunnerResult& runner);

}  // namespace wide::bench
