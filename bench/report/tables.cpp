// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/report.hpp"

namespace wide::bench {

namespace {

constexpr int kStatusCap = 24;  // failures are shown in full below the tables

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
  constexpr std::string_view kUnreliable = ", unreliable";  // "ok?" if there is little room
  const std::string text = status_text(row);
  const size_t at = text.find(kUnreliable);
  if (status != Status::ok || at == std::string::npos) return {text, tone};
  return {text, tone, text.substr(0, at) + "?" + text.substr(at + kUnreliable.size())};
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

/// The sum of one counter over all launches of a runner.
double sum_of(const RunnerResult& runner, std::string_view name) {
  int64_t sum = 0;
  for (const LaunchCounters& l : runner.launches) sum += value_of(l.values, name);
  return static_cast<double>(sum);
}

double buffer_sum_of(const RunnerResult& runner, std::string_view name) {
  int64_t sum = 0;
  for (const LaunchCounters& l : runner.launches) {
    for (const LaunchCounters::Buffer& b : l.buffers) sum += value_of(b.values, name);
  }
  return static_cast<double>(sum);
}

std::string factor(double value, double ideal) {
  return ideal > 0 ? significant(value / ideal) + "x" : "";
}

std::string amount(double value) {
  if (value < 1e4) return fmt::format("{:.0f}", value);
  return value < 1e6   ? significant(value / 1e3) + " k"
         : value < 1e9 ? significant(value / 1e6) + " M"
                       : significant(value / 1e9) + " G";
}

/// The share of a kind's requests that the hardware takes beyond what the bytes need.
std::vector<Cell> counter_cells(const ReportRow& row) {
  if (row.runner == nullptr || row.runner->launches.empty()) return std::vector<Cell>(10);
  const RunnerResult& r = *row.runner;
  const auto sum = [&](const char* name) { return sum_of(r, name); };
  constexpr double kSectorBytes = 32;
  double instructions = 0;
  for (const LaunchCounters& l : r.launches) {
    for (const auto& [name, value] : l.values)
      instructions += name.starts_with("instructions_") ? static_cast<double>(value) : 0;
  }
  const double reread = buffer_sum_of(r, "reread_bytes");
  const double requested =
      kSectorBytes * (buffer_sum_of(r, "read_sectors") + buffer_sum_of(r, "write_sectors"));
  const double minimum = row.point->cost.bytes();
  const double passes =
      sum("shared_load_passes") + sum("shared_store_passes") + sum("matrix_passes");
  const double lost = sum("shared_load_extra") + sum("shared_store_extra") + sum("matrix_extra");
  const double tensor_flops = sum("mma_flops") + sum("wgmma_flops");
  return {{std::to_string(r.launches.size())},
          {amount(instructions)},
          {amount(sum("instructions_fp32"))},
          {factor(sum("load_sectors") + sum("async_copy_sectors"),
                  sum("load_ideal_sectors") + sum("async_copy_ideal_sectors"))},
          {factor(sum("store_sectors"), sum("store_ideal_sectors"))},
          {amount(minimum) + "B"},
          {factor(std::max(0.0, requested - reread), minimum)},
          {factor(reread, minimum)},
          {passes > 0 ? fmt::format("{:.1f}%", 100 * lost / passes) : ""},
          {tensor_flops > 0 ? factor(tensor_flops, row.point->cost.flops) : ""}};
}

}  // namespace

std::string significant(double value) {
  const double size = std::fabs(value);
  return size >= 99.95   ? fmt::format("{:.0f}", value)
         : size >= 9.995 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.2f}", value);
}

CommonAxes::CommonAxes(const RunResult& result, const std::string& op) {
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

std::string CommonAxes::heading() const {
  std::string text;
  for (const auto& entry : common_)
    text += "  " + entry.name + "=" + catalog::to_string(entry.value);
  return text;
}

std::string CommonAxes::rest_of(const catalog::Case& point) const {
  std::string text;
  for (const auto& entry : point.entries()) {
    if (entry.is_default || std::find(common_.begin(), common_.end(), entry) != common_.end())
      continue;
    text += (text.empty() ? "" : " ") + entry.name + "=" + catalog::to_string(entry.value);
  }
  return text;
}

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
               {"vs peer", true, 8},
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

Table counters_table(const std::vector<ReportRow>& rows, const std::string& op,
                     const CommonAxes& axes) {
  constexpr int kAlways = Column::kNeverDropped;
  Table table({{"case", false, kAlways},
               {"strategy", false, kAlways},
               {"launches", true, 4},
               {"instructions", true, 5},
               {"fp32", true, 2},
               {"loads", true, 7},
               {"stores", true, 7},
               {"minimum", true, 4},
               {"bytes", true, 8},
               {"rereads", true, 6},
               {"conflicts", true, 8},
               {"tensor", true, 5},
               {"err/tol", true, 3},
               {"status", false, kAlways, kStatusCap}});
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op) continue;
    std::vector<Cell> cells{{row.opens_case ? axes.rest_of(row.point->point) : ""},
                            {runner_text(row), row.is_baseline ? Tone::dim : Tone::plain}};
    for (Cell& cell : counter_cells(row)) cells.push_back(std::move(cell));
    cells.push_back({row.runner == nullptr ? "" : error_text(*row.runner)});
    cells.push_back(status_cell(row));
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace wide::bench
