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

constexpr int kStatusCap = 24;  // failures are told in full below the tables

std::string significant(double value) {
  const double size = std::fabs(value);
  return size >= 99.95   ? fmt::format("{:.0f}", value)
         : size >= 9.995 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.2f}", value);
}

Cell speedup_cell(const Speedup* speedup) {
  if (speedup == nullptr) return {};
  if (!speedup->speedup_ratio) return {"n/a"};
  const std::string ratio = significant(*speedup->speedup_ratio) + "x";
  const Tone tone = speedup->verdict == "faster"   ? Tone::good
                    : speedup->verdict == "slower" ? Tone::bad
                                                   : Tone::plain;
  if (!speedup->ci_lo || !speedup->ci_hi) return {ratio, tone};
  return {
      fmt::format("{} [{}, {}]", ratio, significant(*speedup->ci_lo), significant(*speedup->ci_hi)),
      tone, ratio};
}

Cell status_cell(const ReportRow& row) {
  const Status status = status_of(row);
  const Tone tone = status == Status::ok        ? Tone::plain
                    : status == Status::skipped ? Tone::dim
                                                : Tone::bad;
  return {status_text(row), tone};
}

/// What all cases of an op share is said once, above its table; `n` stays in every row.
class CommonAxes {
 public:
  CommonAxes(const RunResult& result, const std::string& op) {
    const catalog::Case* first = nullptr;
    for (const CaseResult& c : result.cases) {
      if (c.point.op() != op) continue;
      if (first == nullptr) {
        first = &c.point;
        for (const auto& entry : first->entries()) {
          if (entry.name != "n" && !entry.is_default) common_.push_back(entry);
        }
      }
      std::erase_if(common_, [&](const auto& entry) {
        const auto entries = c.point.entries();
        return std::find(entries.begin(), entries.end(), entry) == entries.end();
      });
    }
  }

  std::string heading() const {
    std::string text;
    for (const auto& entry : common_)
      text += "  " + entry.name + "=" + catalog::to_string(entry.value);
    return text;
  }
  std::string rest_of(const catalog::Case& point) const {
    std::string text;
    for (const auto& entry : point.entries()) {
      if (entry.is_default || std::find(common_.begin(), common_.end(), entry) != common_.end())
        continue;
      text += (text.empty() ? "" : " ") + entry.name + "=" + catalog::to_string(entry.value);
    }
    return text;
  }

 private:
  std::vector<catalog::Case::Entry> common_;
};

std::string runner_text(const ReportRow& row) {
  if (row.runner == nullptr) return "";
  return row.is_baseline ? "(" + row.runner->name + ")" : row.runner->name;
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

using Shown = std::set<const ReportRow*>;

Table sweep_table(const std::vector<ReportRow>& rows, const std::string& op, const CommonAxes& axes,
                  const Shown& shown, bool has_one_regime) {
  constexpr int kAlways = Column::kNeverDropped;
  Table table({{"case", false, kAlways},
               {"strategy", false, kAlways},
               {"regime", false, has_one_regime ? 2 : 7},  // the line of ceilings has it too
               {"time", true, kAlways},
               {"+-", true, 3},
               {"rate", true, 4},
               {"bandwidth", true, 2},
               {"of floor", true, 6},
               {"vs loop", true, 8},
               {"vs streams", true, 5},
               {"vs graph", true, 8},
               {"err/tol", true, 4},
               {"n", true, 1},
               {"status", false, kAlways, kStatusCap}});
  bool needs_case = true;
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op) continue;
    needs_case = needs_case || row.opens_case;
    if (!shown.contains(&row)) continue;
    std::vector<Cell> cells{{needs_case ? axes.rest_of(row.point->point) : ""}};
    needs_case = false;
    cells.push_back({runner_text(row), row.is_baseline ? Tone::dim : Tone::plain});
    for (Cell& cell : timing_cells(row)) cells.push_back(std::move(cell));
    for (const Speedup* speedup : row.speedups) cells.push_back(speedup_cell(speedup));
    cells.push_back({row.runner == nullptr ? "" : error_text(*row.runner)});
    cells.push_back({row.measurement == nullptr ? "" : std::to_string(row.measurement->stats.n)});
    cells.push_back(status_cell(row));
    table.add(std::move(cells));
  }
  return table;
}

Table verify_table(const std::vector<ReportRow>& rows, const std::string& op,
                   const CommonAxes& axes) {
  constexpr int kAlways = Column::kNeverDropped;
  Table table({{"case", false, kAlways},
               {"strategy", false, kAlways},
               {"err/tol", true, kAlways},
               {"compared", true, 6},
               {"of", true, 5},
               {"status", false, kAlways, kStatusCap}});
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op) continue;
    const bool is_checked = row.runner != nullptr && row.runner->verify.before != "not_run";
    const auto count = [&](int64_t value) { return is_checked ? std::to_string(value) : ""; };
    const VerifyOutcome none;
    const VerifyOutcome& verify = is_checked ? row.runner->verify : none;
    table.add({{row.opens_case ? axes.rest_of(row.point->point) : ""},
               {runner_text(row), row.is_baseline ? Tone::dim : Tone::plain},
               {is_checked ? error_text(*row.runner) : ""},
               {count(verify.elements_compared)},
               {count(verify.elements)},
               status_cell(row)});
  }
  return table;
}

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
                : fmt::format("{} threads", d.num_multiprocessors);
    text += "\n";
  }
  const Calibration& c = r.calibration;
  if (c.empty_launch_ns <= 0) return text;  // nothing was timed
  text += "regimes:";
  for (const Regime regime : r.config.regimes) text += " " + std::string(to_string(regime));
  text += "; ceilings: " +
          (c.mem_bw_bytes_per_s > 0 ? format_rate(c.mem_bw_bytes_per_s, "B/s") : "no bandwidth");
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
  std::string text =
      fmt::format("  {} vs {}: crossover N {}, threshold {}", to_string(s.regime),
                  to_string(s.baseline), n(s.crossover_n), n(s.recommended_threshold));
  if (!wins.empty()) text += ", wins: " + wins;
  if (s.best_speedup_ratio) {
    text += fmt::format("; best {}x ({}: {})", significant(*s.best_speedup_ratio), s.best_strategy,
                        s.best_case);
  }
  if (s.geomean_speedup) text += fmt::format(", geomean {}x", significant(*s.geomean_speedup));
  return text + "\n";
}

/// Failures with the command that repeats them, reasons of choices, points that do not exist.
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
  for (const ReportRow& row : rows) {
    if (!explains || row.runner == nullptr || !row.opens_runner) continue;
    if (row.opens_case) notes += row.point->reproduce + "\n";
    if (!row.runner->explain.empty())
      notes += fmt::format("  {}: {}\n", row.runner->name, printable(row.runner->explain));
  }
  for (const auto& [reason, count] : result.impossible_reasons)
    notes += fmt::format("impossible: {} point{}: {}\n", count, count == 1 ? "" : "s", reason);
  if (!result.complete) notes += "incomplete: the sweep was ended before its last case\n";
  return notes;
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

std::string report_text(const RunResult& result, const ReportOptions& options) {
  const std::vector<ReportRow> rows = rows_of(result);
  const Shown shown = choose_rows(rows, options.top);
  std::vector<std::string> ops;
  for (const ReportRow& row : rows) {
    if (std::find(ops.begin(), ops.end(), row.point->point.op()) == ops.end())
      ops.push_back(row.point->point.op());
  }
  std::string text = wrap(device_text(result), options.width);
  for (const std::string& op : ops) {
    const CommonAxes axes(result, op);
    const Table table = options.verify_only
                            ? verify_table(rows, op, axes)
                            : sweep_table(rows, op, axes, shown, result.config.regimes.size() == 1);
    if (table.is_empty()) continue;  // none of the top rows is of this op
    text += "\n" + wrap(op + axes.heading(), options.width) + "\n";
    text += table.render(options.width, options.has_color) + "\n";
    for (const OpSummary& s : result.op_summaries)
      text += s.op == op ? wrap(summary_text(s), options.width) : "";
  }
  const std::string notes = notes_text(result, rows, options.explain);
  return notes.empty() ? text : text + "\n" + wrap(notes, options.width);
}

}  // namespace wide::bench
