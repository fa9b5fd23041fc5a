// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/report/rows.hpp"
#include "bench/report/table.hpp"

namespace wide::bench {

namespace {

std::string significant(double value) {
  const double size = std::fabs(value);
  return size >= 100  ? fmt::format("{:.0f}", value)
         : size >= 10 ? fmt::format("{:.1f}", value)
                      : fmt::format("{:.2f}", value);
}

std::string speedup_text(const Speedup* speedup) {
  if (speedup == nullptr) return "";
  if (!speedup->speedup_ratio) return "n/a";
  return fmt::format("{}x [{}, {}]", significant(*speedup->speedup_ratio),
                     significant(*speedup->ci_lo), significant(*speedup->ci_hi));
}

Cell speedup_cell(const Speedup* speedup) {
  const Tone tone = speedup == nullptr             ? Tone::plain
                    : speedup->verdict == "faster" ? Tone::good
                    : speedup->verdict == "slower" ? Tone::bad
                                                   : Tone::plain;
  return {speedup_text(speedup), tone};
}

Cell status_cell(const ReportRow& row) {
  const bool is_bad = row.runner == nullptr ||
                      (row.runner->status != Status::ok && row.runner->status != Status::skipped);
  const bool is_dim = row.runner != nullptr && row.runner->status == Status::skipped;
  return {status_text(row), is_bad ? Tone::bad : is_dim ? Tone::dim : Tone::plain};
}

std::vector<Cell> timing_cells(const ReportRow& row) {
  if (row.measurement == nullptr) return {{}, {}, {}, {}, {}, {}};
  const Measurement& m = *row.measurement;
  const double spread = m.stats.median_ns > 0 ? 100 * m.stats.mad_ns / m.stats.median_ns : 0;
  const auto flops = m.flops_per_s.value_or(0);
  return {{std::string(to_string(m.regime))},
          {format_time(m.stats.median_ns)},
          {fmt::format("{:.1f}%", spread)},
          {flops > 0 ? format_rate(flops, "FLOP/s") : ""},
          {m.mem_bw_bytes_per_s ? format_rate(*m.mem_bw_bytes_per_s, "B/s") : ""},
          {m.pct_of_floor ? fmt::format("{:.0f}%", *m.pct_of_floor) : ""}};
}

Table sweep_table(const std::vector<ReportRow>& rows, const std::string& op,
                  const std::set<const ReportRow*>& shown) {
  Table table({{"case", false, 9},
               {"strategy", false, 9},
               {"regime", false, 7},
               {"time", true, 9},
               {"+-", true, 3},
               {"rate", true, 4},
               {"bandwidth", true, 2},
               {"of floor", true, 6},
               {"vs loop", true, 9},
               {"vs streams", true, 5},
               {"vs graph", true, 8},
               {"err/tol", true, 5},
               {"n", true, 1},
               {"status", false, 9}});
  bool needs_case = true;
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op) continue;
    needs_case = needs_case || row.opens_case;
    if (!shown.empty() && !shown.contains(&row)) continue;
    std::vector<Cell> cells{{needs_case ? row.point->point.to_string() : ""}};
    needs_case = false;
    cells.push_back({row.runner == nullptr ? ""
                     : row.is_baseline     ? "(" + row.runner->name + ")"
                                           : row.runner->name,
                     row.is_baseline ? Tone::dim : Tone::plain});
    for (Cell& cell : timing_cells(row)) cells.push_back(std::move(cell));
    for (const Speedup* speedup : row.speedups) cells.push_back(speedup_cell(speedup));
    cells.push_back({row.runner == nullptr ? "" : error_text(*row.runner)});
    cells.push_back({row.measurement == nullptr ? "" : std::to_string(row.measurement->stats.n)});
    cells.push_back(status_cell(row));
    table.add(std::move(cells));
  }
  return table;
}

Table verify_table(const std::vector<ReportRow>& rows, const std::string& op) {
  Table table({{"case", false, 9},
               {"strategy", false, 9},
               {"err/tol", true, 9},
               {"compared", true, 9},
               {"of", true, 5},
               {"status", false, 9}});
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op) continue;
    std::vector<Cell> cells{{row.opens_case ? row.point->point.to_string() : ""}};
    const RunnerResult* runner = row.runner;
    cells.push_back({runner == nullptr ? ""
                     : row.is_baseline ? "(" + runner->name + ")"
                                       : runner->name});
    const bool is_checked = runner != nullptr && runner->verify.before != "not_run";
    cells.push_back({is_checked ? error_text(*runner) : ""});
    cells.push_back({is_checked ? std::to_string(runner->verify.elements_compared) : ""});
    cells.push_back({is_checked ? std::to_string(runner->verify.elements) : ""});
    cells.push_back(status_cell(row));
    table.add(std::move(cells));
  }
  return table;
}

/// The rows of the `top` largest speedups against the loop.
std::set<const ReportRow*> largest(const std::vector<ReportRow>& rows, int64_t top) {
  std::vector<const ReportRow*> ranked;
  const auto ratio = [](const ReportRow* row) {
    double best = 0;
    for (const Speedup* s : row->speedups)
      best = s != nullptr ? std::max(best, s->speedup_ratio.value_or(0)) : best;
    return best;
  };
  for (const ReportRow& row : rows) {
    if (ratio(&row) > 0) ranked.push_back(&row);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](auto* a, auto* b) { return ratio(a) > ratio(b); });
  ranked.resize(std::min(ranked.size(), static_cast<size_t>(top)));
  return {ranked.begin(), ranked.end()};
}

std::string device_text(const RunResult& r) {
  std::string text;
  for (const DeviceInfo& d : r.devices) {
    text += fmt::format("{}: {}, ", to_string(d.device), d.name);
    text += d.device.type == DeviceType::cuda
                ? fmt::format("{} SMs, driver {}.{}, CUDA {}", d.num_multiprocessors,
                              d.driver_version / 1000, d.driver_version % 1000 / 10, r.cuda_toolkit)
                : fmt::format("{} threads", d.num_multiprocessors);
    text += "\n";
  }
  const Calibration& c = r.calibration;
  if (c.mem_bw_bytes_per_s <= 0) return text;
  text += "ceilings: " + format_rate(c.mem_bw_bytes_per_s, "B/s");
  for (const auto& [dtype, rate] : c.flops_per_s)
    text += fmt::format(", {} {}", format_rate(rate, "FLOP/s"), dtype);
  if (c.flops_per_s.empty())
    text += ", no FLOP rate (cuBLAS unavailable: floors are of bytes alone)";
  return text + fmt::format("; empty launch {}\n", format_time(c.empty_launch_ns));
}

std::string summary_text(const OpSummary& s) {
  std::string wins;
  for (const auto& [name, count] : s.strategy_wins)
    wins += fmt::format("{}{} {}", wins.empty() ? "" : ", ", name, count);
  const auto n = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : std::string("none");
  };
  return fmt::format(
      "  {} vs {}: crossover N {}, threshold {}, wins: {}; best {}x ({}: {}), geomean {}x\n",
      to_string(s.regime), to_string(s.baseline), n(s.crossover_n), n(s.recommended_threshold),
      wins, significant(s.best_speedup_ratio.value_or(0)), s.best_strategy, s.best_case,
      significant(s.geomean_speedup.value_or(0)));
}

/// Keeps paragraphs within the width by breaking at spaces.
std::string wrap(const std::string& text, int width) {
  std::string out, line;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '\n') {
      line += text[i];
      continue;
    }
    while (display_width(line) > width) {
      size_t cut = line.rfind(' ', static_cast<size_t>(width));
      if (cut == std::string::npos || cut < 5) cut = static_cast<size_t>(width);
      out += line.substr(0, cut) + "\n";
      line = "    " + line.substr(line[cut] == ' ' ? cut + 1 : cut);
    }
    out += line + (i < text.size() ? "\n" : "");
    line.clear();
  }
  return out;
}

}  // namespace

std::string format_time(double ns) {
  if (ns < 1e3) return significant(ns) + " ns";
  if (ns < 1e6) return significant(ns / 1e3) + " us";
  return ns < 1e9 ? significant(ns / 1e6) + " ms" : significant(ns / 1e9) + " s";
}

std::string format_rate(double per_second, const char* unit) {
  if (per_second >= 1e12) return significant(per_second / 1e12) + " T" + unit;
  if (per_second >= 1e9) return significant(per_second / 1e9) + " G" + unit;
  return significant(per_second / 1e6) + " M" + unit;
}

std::string report_text(const RunResult& result, const ReportOptions& options) {
  std::string text = device_text(result);
  const std::vector<ReportRow> rows = rows_of(result);
  const auto shown = options.top > 0 ? largest(rows, options.top) : std::set<const ReportRow*>();
  std::vector<std::string> ops;
  for (const ReportRow& row : rows) {
    if (std::find(ops.begin(), ops.end(), row.point->point.op()) == ops.end())
      ops.push_back(row.point->point.op());
  }
  std::string notes;
  for (const std::string& op : ops) {
    const Table table = options.verify_only ? verify_table(rows, op) : sweep_table(rows, op, shown);
    text = wrap(text, options.width) + "\n" + op + "\n" +
           table.render(options.width, options.has_color) + "\n";
    std::string summaries;
    for (const OpSummary& s : result.op_summaries) summaries += s.op == op ? summary_text(s) : "";
    text += wrap(summaries, options.width);
  }
  for (const ReportRow& row : rows) {
    const bool failed = row.runner == nullptr ||
                        (row.runner->status != Status::ok && row.runner->status != Status::skipped);
    if (!failed) continue;
    notes += fmt::format(
        "FAILED {} {} {}: {}\n  {}\n", row.point->point.op(), row.point->point.to_string(),
        row.runner == nullptr ? "" : row.runner->name, status_text(row), row.point->reproduce);
  }
  if (options.explain) {
    for (const ReportRow& row : rows) {
      if (row.runner != nullptr && !row.runner->explain.empty()) {
        notes +=
            fmt::format("{} {}: {}\n  {}\n", row.point->point.op(), row.point->point.to_string(),
                        row.runner->explain, row.point->reproduce);
      }
    }
  }
  for (const auto& [reason, count] : result.impossible_reasons)
    notes += fmt::format("impossible: {} points: {}\n", count, reason);
  if (!result.complete) notes += "incomplete: the sweep was ended before its last case\n";
  return notes.empty() ? text : text + "\n" + wrap(notes, options.width);
}

}  // namespace wide::bench
