// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The formats: trace events follow "Trace Event Format" (Chromium's catapult), the others the
// readers of their tools.
#include "bench/report/exports.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/document/json_number.hpp"
#include "bench/report/flat_rows.hpp"
#include "bench/report/report.hpp"
#include "bench/report/rows.hpp"
#include "bench/statistics/order.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr ExportFormat kFormats[] = {
    {"csv", "a row per case, strategy and regime", report_csv},
    {"md", "a Markdown table", report_markdown},
    {"jsonl", "the rows of csv as JSON, one a line", export_jsonl},
    {"trace", "samples as Chrome's trace events, for Perfetto", export_trace, true},
    {"google-benchmark", "JSON of Google Benchmark; rounds are repetitions",
     export_google_benchmark, true},
    {"github-action-benchmark", "medians as customSmallerIsBetter", export_github_action}};

/// "linear/n=4 batch=16/wide/stream", unique in a result.
std::string full_name(const ReportRow& row) {
  return fmt::format("{}/{}/{}/{}", row.point->point.op(), row.point->point.to_string(),
                     runner_text(row), to_string(row.measurement->regime));
}

/// Whether a measurement is credible: timed, right and resolved.
bool is_sound(const ReportRow& row) {
  return row.measurement != nullptr && status_of(row) == Status::ok &&
         !row.measurement->below_resolution && std::isfinite(row.measurement->stats.median_ns);
}

std::vector<std::vector<double>> samples_by_round(const Measurement& m) {
  std::map<int64_t, std::vector<double>> rounds;
  for (size_t i = 0; i < m.samples_ns.size() && i < m.samples_round.size(); ++i)
    rounds[m.samples_round[i]].push_back(m.samples_ns[i]);
  std::vector<std::vector<double>> samples;
  for (auto& [round, of_round] : rounds) samples.push_back(std::move(of_round));
  return samples;
}

/// Names of what speaks against the median; empty if nothing does.
std::string doubts_of(const Statistics& s, const char* prefix) {
  if (!s.doubts || s.doubts->empty()) return "";
  return fmt::format("{}{}", prefix, fmt::join(*s.doubts, " "));
}

Json event_of(const char* phase, const std::string& name, int64_t process, int64_t thread) {
  return {{"name", name}, {"ph", phase}, {"pid", process}, {"tid", thread}};
}

using Rows = std::vector<const ReportRow*>;

/// Whether a case's samples say when they were taken, and in which order.
bool has_timeline(const Rows& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const ReportRow* row) {
    const Measurement& m = *row->measurement;
    const size_t count = m.samples_ns.size();
    return m.samples_t_rel_s.size() == count && m.samples_order.size() == count &&
           std::all_of(m.samples_t_rel_s.begin(), m.samples_t_rel_s.end(),
                       [](double t_rel_s) { return std::isfinite(t_rel_s); });
  });
}

struct Taken {
  size_t row;  ///< to which the sample belongs
  int64_t round, order;
  double time_ns, begin_us, length_us;
};

/// A case's samples in the order in which they were taken; the case begins at `begin_us`. Where
/// that is not known: round by round, without gaps.
std::vector<Taken> timeline_of(const Rows& rows, double begin_us) {
  const bool is_known = has_timeline(rows);
  std::vector<Taken> samples;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Measurement& m = *rows[r]->measurement;
    for (size_t i = 0; i < m.samples_ns.size() && i < m.samples_round.size(); ++i) {
      const double ns = m.samples_ns[i];
      if (!std::isfinite(ns) || ns < 0) continue;
      const int64_t round = m.samples_round[i];
      samples.push_back({r, round, is_known ? m.samples_order[i] : round, ns,
                         begin_us + (is_known ? m.samples_t_rel_s[i] * 1e6 : 0),
                         ns * static_cast<double>(m.iters_per_sample) / 1000});
    }
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Taken& a, const Taken& b) { return a.order < b.order; });
  for (size_t i = 1; i < samples.size() && !is_known; ++i)
    samples[i].begin_us = samples[i - 1].begin_us + samples[i - 1].length_us;
  return samples;
}

/// All samples of a case, from `at_us` on, which becomes the end of the last one.
void add_samples(const Rows& rows, int64_t process, double& at_us, Json& events) {
  for (const Taken& taken : timeline_of(rows, at_us)) {
    const ReportRow& row = *rows[taken.row];
    const Measurement& m = *row.measurement;
    Json event = event_of("X", fmt::format("{} {}", runner_text(row), to_string(m.regime)), process,
                          static_cast<int64_t>(taken.row) + 1);
    event["cat"] = to_string(m.regime);
    event["ts"] = taken.begin_us;
    event["dur"] = taken.length_us;
    event["args"] = {
        {"round", taken.round}, {"time_ns", taken.time_ns}, {"calls", m.iters_per_sample}};
    events.push_back(std::move(event));
    at_us = std::max(at_us, taken.begin_us + taken.length_us);
  }
}

Json google_context(const RunResult& r) {
  return {{"date", r.started},
          {"host_name", r.hostname},
          {"executable", "wbench"},
          {"num_cpus", r.cores},
          {"mhz_per_cpu", 0},
          {"cpu_scaling_enabled",
           !r.host_state.governor.empty() && r.host_state.governor != "performance"},
          {"caches", Json::array()},
          {"load_avg", Json::array()},
          {"library_version", "wbench " + r.tool_version},
          {"library_build_type", r.build_type == "Debug" ? "debug" : "release"},
          {"json_schema_version", 1},
          {"git_sha", r.git_sha},
          {"device", r.devices.empty() ? "" : r.devices.front().name}};
}

/// cpu_time is required; only wall and device time are known, so it repeats that.
void set_times(Json& entry, const Json& time) {
  entry["real_time"] = entry["cpu_time"] = time;
  entry["time_unit"] = "ns";
}

void add_google_rows(const ReportRow& row, int64_t family, Json& benchmarks) {
  const Measurement& m = *row.measurement;
  const std::string name = full_name(row);
  const std::vector<std::vector<double>> rounds = samples_by_round(m);
  const auto entry_of = [&](const std::string& entry_name, const char* type) {
    return Json{{"name", entry_name}, {"family_index", family}, {"per_family_instance_index", 0},
                {"run_name", name},   {"run_type", type},       {"repetitions", rounds.size()}};
  };
  for (size_t i = 0; i < rounds.size(); ++i) {
    Json entry = entry_of(name, "iteration");
    entry["repetition_index"] = i;
    entry["threads"] = 1;
    entry["iterations"] = m.iters_per_sample * static_cast<int64_t>(rounds[i].size());
    const double time_ns = median(rounds[i]);
    set_times(entry, json_number(time_ns));
    const auto add_rate = [&](const char* key, std::optional<double> of_all) {
      if (of_all) entry[key] = json_number(*of_all * m.stats.median_ns / time_ns);
    };
    add_rate("items_per_second", m.items_per_s);
    add_rate("bytes_per_second", m.mem_bw_bytes_per_s);
    add_rate("flops_per_second", m.flops_per_s);
    const std::string doubts = doubts_of(m.stats, "unreliable: ");
    if (!doubts.empty()) entry["label"] = doubts;
    benchmarks.push_back(std::move(entry));
  }
  const std::pair<const char*, double> aggregates[] = {{"mean", m.stats.mean_ns},
                                                       {"median", m.stats.median_ns},
                                                       {"stddev", m.stats.stdev_ns},
                                                       {"cv", m.stats.cv_pct / 100}};
  for (const auto& [aggregate, value] : aggregates) {
    Json entry = entry_of(name + "_" + aggregate, "aggregate");
    entry["threads"] = 1;
    entry["aggregate_name"] = aggregate;
    entry["aggregate_unit"] = std::string_view(aggregate) == "cv" ? "percentage" : "time";
    entry["iterations"] = rounds.size();
    set_times(entry, json_number(value));
    benchmarks.push_back(std::move(entry));
  }
}

}  // namespace

std::span<const ExportFormat> export_formats() {
  return kFormats;
}

std::string export_text(const ExportFormat& format, const RunResult& result) {
  for (const ReportRow& row : rows_of(result)) {
    const Measurement* m = row.measurement;
    if (!format.needs_samples || m == nullptr || m->stats.n == 0 || !m->samples_ns.empty())
      continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--export {}: run {} was written without its samples, which {} needs",
                            format.name, result.id, format.name));
  }
  return format.write(result);
}

Export parse_export(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::vector<std::string_view> names;
  for (const ExportFormat& format : kFormats) {
    if (name == format.name && equals != std::string::npos && equals + 1 < text.size())
      return {&format, text.substr(equals + 1)};
    names.emplace_back(format.name);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    throw Error(ErrorCode::invalid_argument,
                "--export: \"" + text + "\", expected " + name + "=FILE");
  }
  throw Error(ErrorCode::invalid_argument,
              "--export: " + catalog::unknown_name_message("format", name, names));
}

std::string export_jsonl(const RunResult& result) {
  std::string text;
  for (const Json& row : flat_rows(result)) text += dumped(row, -1);
  return text;
}

std::string export_trace(const RunResult& result) {
  Json events = Json::array();
  double at_us = 0;
  bool is_known = true;
  const std::vector<ReportRow> all = rows_of(result);
  int64_t process = 0;
  for (const CaseResult& c : result.cases) {
    Rows rows;
    for (const ReportRow& row : all) {
      if (row.point == &c && row.measurement != nullptr) rows.push_back(&row);
    }
    if (rows.empty()) continue;
    Json name = event_of("M", "process_name", ++process, 0);
    name["args"] = {{"name", c.point.op() + " " + c.point.to_string()}};
    events.push_back(std::move(name));
    for (size_t i = 0; i < rows.size(); ++i) {
      Json thread = event_of("M", "thread_name", process, static_cast<int64_t>(i) + 1);
      thread["args"] = {{"name", runner_text(*rows[i]) + " " +
                                     std::string(to_string(rows[i]->measurement->regime))}};
      events.push_back(std::move(thread));
    }
    add_samples(rows, process, at_us, events);
    is_known = is_known && has_timeline(rows);
  }
  const char* note = is_known
                         ? "samples begin when they were taken; gaps between cases are not known"
                         : "samples are laid end to end; gaps between them are not known";
  return dumped({{"traceEvents", events},
                 {"displayTimeUnit", "ns"},
                 {"otherData", {{"run", result.id}, {"started", result.started}, {"note", note}}}},
                -1);
}

std::string export_google_benchmark(const RunResult& result) {
  Json benchmarks = Json::array();
  int64_t family = 0;
  for (const ReportRow& row : rows_of(result)) {
    if (row.runner == nullptr) continue;
    const Status status = status_of(row);
    if (is_sound(row)) {
      add_google_rows(row, family++, benchmarks);
    } else if (status != Status::ok && status != Status::skipped && row.opens_runner) {
      const std::string name = fmt::format("{}/{}/{}", row.point->point.op(),
                                           row.point->point.to_string(), runner_text(row));
      Json entry = {{"name", name},
                    {"family_index", family++},
                    {"per_family_instance_index", 0},
                    {"run_name", name},
                    {"run_type", "iteration"},
                    {"repetitions", 1},
                    {"repetition_index", 0},
                    {"threads", 1},
                    {"error_occurred", true},
                    {"error_message", status_text(row)},
                    {"iterations", 0}};
      set_times(entry, 0.0);
      benchmarks.push_back(std::move(entry));
    }
  }
  return dumped({{"context", google_context(result)}, {"benchmarks", benchmarks}}, 1);
}

std::string export_github_action(const RunResult& result) {
  Json benchmarks = Json::array();
  for (const ReportRow& row : rows_of(result)) {
    if (row.runner == nullptr || !is_sound(row)) continue;
    const Statistics& s = row.measurement->stats;
    benchmarks.push_back(
        {{"name", full_name(row)},
         {"unit", "ns"},
         {"value", s.median_ns},
         {"range", fmt::format("± {:.3g}", s.mad_ns)},
         {"extra", fmt::format("95 % interval [{:.6g}, {:.6g}] ns, {}{}\n{}", s.ci_lo_ns,
                               s.ci_hi_ns, counted(s.n, "sample"), doubts_of(s, ", unreliable: "),
                               row.point->reproduce)}});
  }
  return dumped(benchmarks, 1);
}

}  // namespace wide::bench
