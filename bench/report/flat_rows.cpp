// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/flat_rows.hpp"

#include <map>

#include "bench/document/json_number.hpp"
#include "bench/report/details.hpp"
#include "bench/report/rows.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

void add_statistics(const Measurement* m, Json& row) {
  const auto time = [&](const char* key, double Statistics::*value) {
    row[key] = m == nullptr ? Json(nullptr) : json_number(m->stats.*value);
  };
  row["n"] = m == nullptr ? 0 : m->stats.n;
  time("median_ns", &Statistics::median_ns);
  time("mad_ns", &Statistics::mad_ns);
  time("p5_ns", &Statistics::p5_ns);
  time("p95_ns", &Statistics::p95_ns);
  time("ci_lo_ns", &Statistics::ci_lo_ns);
  time("ci_hi_ns", &Statistics::ci_hi_ns);
  row["flops_per_s"] = m == nullptr ? Json(nullptr) : json_number(m->flops_per_s);
  row["mem_bw_bytes_per_s"] = m == nullptr ? Json(nullptr) : json_number(m->mem_bw_bytes_per_s);
  row["items_per_s"] = m == nullptr ? Json(nullptr) : json_number(m->items_per_s);
  row["pct_of_floor"] = m == nullptr ? Json(nullptr) : json_number(m->pct_of_floor);
}

/// The simulated GPU's counters for one call: sums over its launches, and over their buffers.
void add_counters(const RunnerResult& runner, Json& row) {
  std::map<std::string, int64_t> sums;
  for (const LaunchCounters& launch : runner.launches) {
    for (const auto& [name, value] : launch.values) sums["counter_" + name] += value;
    for (const LaunchCounters::Buffer& buffer : launch.buffers) {
      for (const auto& [name, value] : buffer.values) sums["counter_buffers_" + name] += value;
    }
  }
  for (const auto& [name, sum] : sums) row[name] = sum;
}

/// What distinguishes the rows of one run from another's, so that tables can be joined.
void add_run(const RunResult& result, Json& row) {
  row["run_id"] = result.id;
  row["started"] = result.started;
  row["git_sha"] = result.git_sha;
  row["device"] = result.devices.empty() ? "" : result.devices.front().name;
}

}  // namespace

std::vector<Json> flat_rows(const RunResult& result) {
  std::vector<Json> rows;
  for (const ReportRow& r : rows_of(result)) {
    const RunnerResult none;
    const RunnerResult& runner = r.runner == nullptr ? none : *r.runner;
    const Measurement* m = r.measurement;
    Json row = {
        {"case_id", r.point->case_id},        {"op", r.point->point.op()},
        {"case", r.point->point.to_string()}, {"name", runner.name},
        {"is_baseline", r.is_baseline},       {"regime", m == nullptr ? "" : to_string(m->regime)},
        {"status", to_string(status_of(r))},  {"verified", runner.verified}};
    add_statistics(m, row);
    constexpr const char* kSpeedups[] = {"speedup_loop", "speedup_streams", "speedup_graph",
                                         "speedup_peer"};
    for (size_t i = 0; i < std::size(kSpeedups); ++i) {
      const Speedup* s = r.speedups[i];
      row[kSpeedups[i]] = s == nullptr ? Json(nullptr) : json_number(s->speedup_ratio);
    }
    const Speedup* against = r.speedups[static_cast<size_t>(Baseline::peer)];
    row["fastest_peer"] = against == nullptr ? "" : against->peer;
    row["peer"] = runner.peer;
    row["worst_error_ratio"] = json_number(runner.verify.worst_error_ratio);
    row["worst_member"] = runner.verify.worst_member;
    row["reason"] = r.runner == nullptr ? r.point->reason : runner.reason;
    add_details(r, row);
    add_counters(runner, row);
    add_run(result, row);
    for (const auto& entry : r.point->point.entries()) {
      const auto* integer = std::get_if<int64_t>(&entry.value);
      row["axis_" + entry.name] =
          integer != nullptr ? Json(*integer) : Json(std::get<std::string>(entry.value));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace wide::bench
