// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/cases/value_spec.hpp"
#include "bench/document/doubts.hpp"
#include "bench/document/result_json.hpp"
#include "bench/report/details.hpp"
#include "bench/report/rows.hpp"
#include "bench/report/tables.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The rows to show: all, or those of the `top` largest speedups against any baseline.
Shown choose_rows(const std::vector<ReportRow>& rows, int64_t top) {
  std::vector<std::pair<double, const ReportRow*>> ranked;
  Shown all;
  for (const ReportRow& row : rows) {
    all.insert(&row);
    double best = 0;
    for (const Speedup* s : row.speedups)
      best = s != nullptr ? std::max(best, s->speedup_ratio.value_or(0)) : best;
    if (best > 0) ranked.emplace_back(best, &row);
  }
  if (top <= 0) return all;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Shown shown;
  for (size_t i = 0; i < ranked.size() && static_cast<int64_t>(i) < top; ++i)
    shown.insert(ranked[i].second);
  return shown;
}

std::string device_text(const RunResult& r) {
  std::string text;
  for (const DeviceInfo& d : r.devices) {
    text += fmt::format("{}: {}, ", to_string(d.device), d.name);
    text += d.device.type == DeviceType::cuda
                ? fmt::format("{} SMs, driver {}.{}, CUDA {}", d.num_multiprocessors,
                              d.driver_version / 1000, d.driver_version % 1000 / 10, r.cuda_toolkit)
                : counted(d.num_multiprocessors, "thread");
    text += "\n";
  }
  const Calibration& c = r.calibration;
  if (c.empty_launch_ns <= 0) return text;  // nothing was timed
  text += "regimes:";
  for (const Regime regime : r.config.regimes) text += " " + std::string(to_string(regime));
  return text + fmt::format("; ceilings: {}; empty launch {}\n", ceilings_text(c),
                            format_time(c.empty_launch_ns));
}

/// "a+b*n" with its coefficients: "1.20 us + 310 ns * n".
std::string formula_text(const ScalingFit& f) {
  const size_t factor = f.model.find("b*");
  if (factor == std::string::npos) return format_time(f.a_ns);
  return fmt::format("{}{} * {}", f.a_ns > 0 ? format_time(f.a_ns) + " + " : "",
                     format_time(f.b_ns), f.model.substr(factor + 2));
}

/// Each regime once, since summaries against several baselines repeat it.
std::string scaling_text(const RunResult& result, const std::string& op) {
  std::string text;
  std::set<Regime> shown;
  for (const OpSummary& s : result.op_summaries) {
    if (s.op != op || !shown.insert(s.regime).second) continue;
    for (const ScalingFit& f : s.scaling_fits) {
      text += fmt::format("  {} {}{}: {}, within {:.1f}% at {} values of n\n", to_string(s.regime),
                          f.strategy, f.axes.empty() ? "" : " at " + f.axes, formula_text(f),
                          f.rms_pct, f.points);
    }
  }
  return text;
}

/// The smallest possible crossover, if it differs.
std::string crossover_text(const OpSummary& s) {
  const std::string value = s.crossover_n ? std::to_string(*s.crossover_n) : "none";
  if (!s.crossover_lo || s.crossover_lo == s.crossover_n) return value;
  return fmt::format("{} (maybe {})", value, *s.crossover_lo);
}

std::string summary_text(const OpSummary& s) {
  std::string wins;
  for (const auto& [name, count] : s.strategy_wins)
    wins += fmt::format("{}{} {}", wins.empty() ? "" : ", ", name, count);
  const auto n = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : std::string("none");
  };
  std::string text =
      fmt::format("  {} vs {}: crossover N {}, threshold {}", to_string(s.regime),
                  to_string(s.baseline), crossover_text(s), n(s.recommended_threshold));
  if (!wins.empty()) text += ", wins: " + wins;
  if (s.best_speedup_ratio) {
    text += fmt::format("; best {}x ({}: {})", significant(*s.best_speedup_ratio), s.best_strategy,
                        s.best_case);
  }
  if (s.geomean_speedup) text += fmt::format(", geomean {}x", significant(*s.geomean_speedup));
  return text + "\n";
}

/// The case's command, narrowed to what the row shows.
std::string row_command(const ReportRow& row) {
  std::string command = row.point->reproduce;
  if (row.runner->peer.empty())
    command += (row.is_baseline ? " --baseline " : " --strategy ") + row.runner->name;
  if (row.measurement != nullptr)
    command += " --regime " + std::string(to_string(row.measurement->regime));
  return command;
}

/// The tables that -v adds for one op; or those of its columns that are requested.
std::string details_text(const std::vector<ReportRow>& rows, const std::string& op,
                         const CommonAxes& axes, const Shown& shown, const ReportOptions& options) {
  std::string text;
  std::vector<Table> tables{details_table(rows, op, axes, shown)};
  if (!options.metrics.empty() && !tables[0].choose(options.metrics)) tables.clear();
  if (options.details) tables.push_back(kernels_table(rows, op, axes, shown));
  for (const Table& table : tables) {
    if (!table.is_empty()) text += "\n" + table.render(options.width, options.has_color) + "\n";
  }
  return text;
}

/// The runners that did not run in an op's cases, and why. `shown`: null if all rows are.
std::vector<std::pair<std::string, std::string>> skips_of(const std::vector<ReportRow>& rows,
                                                          const std::string& op,
                                                          const CommonAxes& axes,
                                                          const Shown* shown) {
  std::vector<std::pair<std::string, std::string>> skips;
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op || status_of(row) != Status::skipped) continue;
    if (shown != nullptr && !shown->contains(&row)) continue;
    const bool is_case = row.runner == nullptr;
    skips.emplace_back(is_case ? axes.rest_of(row.point->point) : runner_text(row),
                       status_text(row));
  }
  return skips;
}

/// Whether a row's runner gave right results with different bits; wrong ones are reported as such.
bool has_unstable_bits(const ReportRow& row) {
  return row.runner != nullptr && status_of(row) == Status::ok &&
         !row.runner->verify.bitwise_stable.value_or(true);
}

/// Failures with the command that repeats them, results without bitwise stability, reasons of
/// choices, impossible points, and what speaks against the machine.
std::string notes_text(const RunResult& result, const std::vector<ReportRow>& rows, bool explains) {
  std::string notes;
  const auto place = [](const ReportRow& row) {
    return row.point->point.op() + " " + row.point->point.to_string() +
           (row.runner == nullptr ? "" : " " + row.runner->name);
  };
  for (const ReportRow& row : rows) {
    const Status status = status_of(row);
    if (status == Status::ok || status == Status::skipped || !row.opens_runner) continue;
    notes += fmt::format("FAILED {}: {}\n  {}\n", place(row), printable(status_text(row)),
                         row.point->reproduce);
  }
  for (const CaseResult& c : result.cases) {
    if (!is_mistrusted(c)) continue;
    notes += fmt::format("MISTRUSTED {} {}: most of what it was checked against is 0\n",
                         c.point.op(), c.point.to_string());
  }
  for (const ReportRow& row : rows) {
    if (row.opens_runner && has_unstable_bits(row))
      notes += fmt::format(
          "UNSTABLE {}: calls that were checked gave different bits, all within the tolerance\n",
          place(row));
  }
  for (const ReportRow& row : rows) {
    if (!explains || row.runner == nullptr) continue;
    if (row.opens_runner && !row.runner->explain.empty())
      notes += fmt::format("{}: {}\n", place(row), printable(row.runner->explain));
    if (row.measurement != nullptr && is_doubtful(*row.measurement)) {
      for (const std::string& doubt : *row.measurement->stats.doubts)
        notes +=
            fmt::format("{} {}: unreliable, {}\n", place(row), to_string(row.measurement->regime),
                        printable(doubt_text(*row.measurement, doubt)));
    }
    notes += "  " + row_command(row) + "\n";
  }
  for (const auto& [reason, count] : result.impossible_reasons)
    notes += fmt::format("impossible: {}: {}\n", counted(count, "point"), reason);
  for (const std::string& note : {samples_note(result), schema_note(result)})
    if (!note.empty()) notes += printable(note) + "\n";
  for (const EnvironmentCheck& check : result.environment_checks)
    notes += fmt::format("{}: {}\n", check.severity, printable(check.text));
  if (!result.complete) notes += "incomplete: the sweep was ended before its last case\n";
  return notes;
}

/// How many times are unreliable, in how many cases, which is what a result's totals count, and how
/// to learn why.
std::string doubts_text(const std::vector<ReportRow>& rows) {
  int64_t doubtful = 0, all = 0;
  std::set<const CaseResult*> cases, doubtful_cases;
  for (const ReportRow& row : rows) {
    if (row.measurement == nullptr) continue;
    ++all;
    cases.insert(row.point);
    if (!is_doubtful(*row.measurement)) continue;
    ++doubtful;
    doubtful_cases.insert(row.point);
  }
  if (doubtful == 0) return "";
  return fmt::format("unreliable: {} of {}, in {} of {}; -v names what speaks against each\n",
                     doubtful, counted(all, "time"), doubtful_cases.size(),
                     counted(cases.size(), "case"));
}

/// How much of the outputs was compared, if not all.
std::string sample_text(const std::vector<ReportRow>& rows) {
  int64_t compared = 0, all = 0;
  for (const ReportRow& row : rows) {
    if (!row.opens_runner || row.runner == nullptr) continue;
    compared += row.runner->verify.elements_compared;
    all += row.runner->verify.elements;
  }
  if (compared == all) return "";
  return fmt::format("compared: {} of {} values of outputs; verify --all compares all\n", compared,
                     all);
}

/// The names of a list, which must be `known` ones; none of an empty one.
std::vector<std::string> parse_columns(const std::string& what, const std::string& list,
                                       const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  if (list.empty()) return {};
  std::vector<std::string> names = parse_list(what + "s", list, views);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ErrorCode::invalid_argument,
                  "--" + what + "s: " + catalog::unknown_name_message(what, name, views));
    }
  }
  return names;
}

}  // namespace

std::string format_time(double ns) {
  if (ns < 999.5) return significant(ns) + " ns";
  if (ns < 999.5e3) return significant(ns / 1e3) + " us";
  return ns < 999.5e6 ? significant(ns / 1e6) + " ms" : significant(ns / 1e9) + " s";
}

std::string format_rate(double per_second, const char* unit) {
  if (per_second >= 999.5e9) return significant(per_second / 1e12) + " T" + unit;
  if (per_second >= 999.5e6) return significant(per_second / 1e9) + " G" + unit;
  return significant(per_second / 1e6) + " M" + unit;
}

std::string ceilings_text(const Calibration& c) {
  std::string text =
      c.mem_bw_bytes_per_s > 0 ? format_rate(c.mem_bw_bytes_per_s, "B/s") : "no bandwidth";
  for (const auto& [dtype, rate] : c.flops_per_s)
    text += fmt::format(", {} {}", format_rate(rate, "FLOP/s"), dtype);
  if (c.flops_per_s.empty())
    text += ", no FLOP rate (cuBLAS unavailable: floors are of bytes alone)";
  return text;
}

std::vector<std::string> known_metrics() {
  const RunResult none;
  const CommonAxes axes(none, "");
  std::vector<std::string> names = sweep_table({}, "", axes, {}, false).measures();
  for (std::string& name : details_table({}, "", axes, {}).measures()) names.push_back(name);
  names.emplace_back("speedup");
  return names;
}

std::vector<std::string> parse_metrics(const std::string& list) {
  std::vector<std::string> names;
  for (std::string& name : parse_columns("metric", list, known_metrics())) {
    if (name != "speedup") {
      names.push_back(std::move(name));
      continue;
    }
    for (const char* against : {"vs loop", "vs streams", "vs graph", "vs peer"})
      names.emplace_back(against);
  }
  return names;
}

std::vector<std::string> parse_counters(const std::string& list) {
  return parse_columns("counter", list, counters_table({}, "", {RunResult(), ""}).measures());
}

std::string report_text(const RunResult& result, const ReportOptions& options) {
  const std::vector<ReportRow> rows = rows_of(result);
  const Shown shown = choose_rows(rows, options.top);
  std::string text = wrap(device_text(result), options.width);
  if (options.details && options.content == ReportContent::times)
    text += wrap(method_text(result), options.width);
  for (const std::string& op : ops_of(result)) {
    const CommonAxes axes(result, op);
    Table table = options.content == ReportContent::checks ? verify_table(rows, op, axes)
                  : options.content == ReportContent::counters
                      ? counters_table(rows, op, axes)
                      : sweep_table(rows, op, axes, shown, result.config.regimes.size() == 1);
    const std::vector<std::string>& chosen =
        options.content == ReportContent::counters ? options.counters : options.metrics;
    if (options.content != ReportContent::checks && !chosen.empty()) (void)table.choose(chosen);
    if (table.is_empty()) continue;  // none of the top rows belongs to this op
    text += "\n" + wrap(op + axes.heading(), options.width) + "\n";
    const std::string rendered = table.render(options.width, options.has_color);
    const Shown* const limits = options.content == ReportContent::times ? &shown : nullptr;
    text += rendered + "\n" + cut_texts(rendered, skips_of(rows, op, axes, limits), options.width);
    for (const OpSummary& s : result.op_summaries)
      text += s.op == op ? wrap(summary_text(s), options.width) : "";
    if (options.details) text += wrap(scaling_text(result, op), options.width);
    if (options.details || !options.metrics.empty())
      text += details_text(rows, op, axes, shown, options);
  }
  std::string notes = notes_text(result, rows, options.explain);
  if (options.content == ReportContent::checks) notes = sample_text(rows) + notes;
  if (options.content == ReportContent::times && !options.details && !options.explain)
    notes = doubts_text(rows) + notes;
  return notes.empty() ? text : text + "\n" + wrap(notes, options.width);
}

}  // namespace wide::bench
