// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/document/doubts.hpp"

namespace wide::bench {

namespace {

void add_rows(const CaseResult& point, const RunnerResult& runner, bool is_baseline,
              std::vector<ReportRow>& rows) {
  const bool opens = rows.empty() || rows.back().point != &point;
  ReportRow row{&point, &runner, nullptr, is_baseline, {}, opens, true};
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
    row.opens_case = row.opens_runner = false;
  }
}

}  // namespace

std::vector<ReportRow> rows_of(const RunResult& result) {
  std::vector<ReportRow> rows;
  for (const CaseResult& point : result.cases) {
    const size_t before = rows.size();
    for (const RunnerResult& runner : point.baselines) add_rows(point, runner, true, rows);
    for (const RunnerResult& runner : point.strategies) add_rows(point, runner, false, rows);
    if (rows.size() == before) rows.push_back({&point, nullptr, nullptr, false, {}, true, true});
  }
  return rows;
}

std::vector<std::string> ops_of(const RunResult& result) {
  std::vector<std::string> ops;
  for (const CaseResult& c : result.cases) {
    if (std::find(ops.begin(), ops.end(), c.point.op()) == ops.end()) ops.push_back(c.point.op());
  }
  return ops;
}

std::string runner_text(const ReportRow& row) {
  if (row.runner == nullptr) return "";
  return row.is_baseline ? "(" + row.runner->name + ")" : row.runner->name;
}

Status status_of(const ReportRow& row) {
  if (row.runner == nullptr) return row.point->status;
  const bool was_run = row.measurement != nullptr || row.runner->verify.before != "not_run";
  if (row.runner->status != Status::ok || was_run) return row.runner->status;
  return row.point->status;
}

std::string status_text(const ReportRow& row) {
  const Status status = status_of(row);
  const bool is_runners = row.runner != nullptr && row.runner->status == status;
  const std::string& reason = is_runners ? row.runner->reason : row.point->reason;
  if (status == Status::verify_failed) return "VERIFY FAILED: " + reason;
  if (status != Status::ok) return fmt::format("{}: {}", to_string(status), reason);
  if (row.runner == nullptr) return "ok";
  const RunnerResult& runner = *row.runner;
  if (row.measurement != nullptr && row.measurement->below_resolution) return "below_resolution";
  std::string text = runner.verified ? "ok" : "unverified";
  if (row.measurement != nullptr && row.measurement->few_samples) {
    text += ", few_samples";
  } else if (row.measurement != nullptr && is_doubtful(*row.measurement)) {
    text += ", unreliable";
  }
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
