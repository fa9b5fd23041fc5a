// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// CSV (RFC 4180) and Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/report/details.hpp"
#include "bench/report/flat_rows.hpp"
#include "bench/report/report.hpp"
#include "bench/report/rows.hpp"
#include "bench/report/table.hpp"
#include "bench/report/tables.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

/// Control characters of a file must not reach a terminal by way of `csv=-`.
std::string quoted(const std::string& unsafe) {
  const std::string text = printable(unsafe);
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// As in JSON, except that null is empty.
std::string cell_of(const Json& value) {
  if (value.is_string()) return quoted(value.get<std::string>());
  return value.is_null() ? "" : value.dump();
}

}  // namespace

std::string report_csv(const RunResult& result) {
  const std::vector<Json> rows = flat_rows(result);
  std::vector<std::string> columns;  // of all rows, in the order in which they first occur
  std::set<std::string> seen;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) {
      if (seen.insert(key).second) columns.push_back(key);
    }
  }
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ",") + quoted(column);
  for (const Json& row : rows) {
    text += "\r\n";
    for (const std::string& column : columns) {
      if (column != columns.front()) text += ",";
      if (const auto found = row.find(column); found != row.end()) text += cell_of(*found);
    }
  }
  return text + "\r\n";
}

namespace {

/// For a run on the simulated GPU: counters instead of times.
std::string counters_markdown(const RunResult& result, const std::vector<ReportRow>& rows) {
  std::string text;
  std::vector<std::string> ops;
  for (const ReportRow& row : rows) {
    const std::string& op = row.point->point.op();
    if (std::find(ops.begin(), ops.end(), op) != ops.end()) continue;
    ops.push_back(op);
    const CommonAxes axes(result, op);
    text += escaped_markdown(op + axes.heading()) + "\n\n" +
            counters_table(rows, op, axes).markdown() + "\n";
  }
  return text;
}

bool has_counters_only(const RunResult& result) {
  bool has_launches = false;
  for (const CaseResult& c : result.cases) {
    for (const RunnerResult& r : c.strategies) {
      if (!r.measurements.empty()) return false;
      has_launches = has_launches || !r.launches.empty();
    }
  }
  return has_launches;
}

}  // namespace

std::string report_markdown(const RunResult& result) {
  std::string text;
  for (const DeviceInfo& d : result.devices)
    text += escaped_markdown(
                fmt::format("Device: {}, {}; {}", to_string(d.device), d.name, result.started)) +
            "\n\n";
  if (has_counters_only(result)) return text + counters_markdown(result, rows_of(result));
  text +=
      "| op | case | strategy | regime | time | of floor | vs loop | vs streams | vs graph | vs "
      "peer | "
      "err/tol | status |\n"
      "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n";
  const std::vector<ReportRow> rows = rows_of(result);
  for (const ReportRow& row : rows) {
    const bool is_timed = row.measurement != nullptr;
    text += fmt::format("| {} | {} | {} | {} | {} | {} |", escaped_markdown(row.point->point.op()),
                        escaped_markdown(row.point->point.to_string()),
                        escaped_markdown(runner_text(row)),
                        is_timed ? to_string(row.measurement->regime) : "",
                        is_timed ? format_time(row.measurement->stats.median_ns) : "",
                        is_timed && row.measurement->pct_of_floor
                            ? fmt::format("{:.0f}%", *row.measurement->pct_of_floor)
                            : "");
    for (const Speedup* s : row.speedups) {
      if (s != nullptr && s->speedup_ratio) text += fmt::format(" {:.2f}", *s->speedup_ratio);
      if (s != nullptr && s->ci_lo && s->ci_hi)
        text += fmt::format(" [{:.2f}, {:.2f}]", *s->ci_lo, *s->ci_hi);
      text += " |";
    }
    text += fmt::format(" {} | {} |\n", row.runner == nullptr ? "" : error_text(*row.runner),
                        escaped_markdown(status_text(row)));
  }
  // For each op, what is known besides times.
  Shown all;
  std::vector<std::string> ops;
  for (const ReportRow& row : rows) {
    all.insert(&row);
    if (row.measurement != nullptr &&
        std::find(ops.begin(), ops.end(), row.point->point.op()) == ops.end())
      ops.push_back(row.point->point.op());
  }
  for (const std::string& op : ops) {
    const CommonAxes axes(result, op);
    for (const Table& table :
         {details_table(rows, op, axes, all), kernels_table(rows, op, axes, all)}) {
      if (table.is_empty()) continue;
      text += "\n" + escaped_markdown(op + axes.heading()) + "\n\n" + table.markdown();
    }
  }
  return text;
}

}  // namespace wide::bench
