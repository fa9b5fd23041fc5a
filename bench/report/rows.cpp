// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/rows.hpp"

#include <fmt/format.h>

namespace wide::bench {

namespace {

void add_rows(const CaseResult& point, const RunnerResult& runner, bool is_baseline,
              std::vector<ReportRow>& rows) {
  const bool opens = rows.empty() || rows.back().point != &point;
  ReportRow row{&point, &runner, nullptr, is_baseline, {}, opens};
  if (runner.measurements.empty()) {
    rows.push_back(row);
    return;
  }
  for (const Measurement& measurement : runner.measurements) {
    row.measurement = &measurement;
    for (auto& speedup : row.speedups) speedup = nullptr;
    for (const Speedup& speedup : point.speedups) {
      if (!is_baseline && speedup.strategy == runner.name && speedup.regime == measurement.regime) {
        row.speedups[static_cast<size_t>(speedup.baseline)] = &speedup;
      }
    }
    rows.push_back(row);
    row.opens_case = false;
  }
}

}  // namespace

std::vector<ReportRow> rows_of(const RunResult& result) {
  std::vector<ReportRow> rows;
  for (const CaseResult& point : result.cases) {
    const size_t before = rows.size();
    for (const RunnerResult& runner : point.baselines) add_rows(point, runner, true, rows);
    for (const RunnerResult& runner : point.strategies) add_rows(point, runner, false, rows);
    if (rows.size() == before) rows.push_back({&point, nullptr, nullptr, false, {}, true});
  }
  return rows;
}

std::string status_text(const ReportRow& row) {
  if (row.runner == nullptr)
    return fmt::format("{}: {}", to_string(row.point->status), row.point->reason);
  const RunnerResult& runner = *row.runner;
  if (runner.status == Status::verify_failed) return "VERIFY FAILED: " + runner.reason;
  if (runner.status != Status::ok)
    return fmt::format("{}: {}", to_string(runner.status), runner.reason);
  if (row.measurement != nullptr && row.measurement->below_resolution) return "below_resolution";
  std::string text = runner.verified ? "ok" : "unverified";
  if (row.measurement != nullptr && row.measurement->few_samples) text += ", few_samples";
  if (runner.verify.before == "not_run") text += ", not_checked";
  return text;
}

std::string error_text(const RunnerResult& runner) {
  const VerifyOutcome& verify = runner.verify;
  if (verify.before == "not_run") return "";
  if (verify.worst_member < 0) return "-";
  if (!verify.worst_error_ratio) return fmt::format("inf @{}", verify.worst_member);
  return fmt::format("{:.2g} @{}", *verify.worst_error_ratio, verify.worst_member);
}

}  // namespace wide::bench
