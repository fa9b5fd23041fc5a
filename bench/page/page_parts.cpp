// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/page/page_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "bench/compare/verdicts.hpp"
#include "bench/document/doubts.hpp"
#include "bench/report/html.hpp"
#include "bench/report/report.hpp"
#include "bench/report/rows.hpp"
#include "bench/report/tables.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

std::string ratio_text(const std::optional<double>& value) {
  return value ? significant(*value) + "x" : "";
}

std::string count_text(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "none";
}

HtmlCell speedup_html(const Speedup* s) {
  if (s == nullptr) return {};
  if (!s->speedup_ratio) return {"n/a"};
  std::string text = significant(*s->speedup_ratio) + "x";
  if (s->ci_lo && s->ci_hi)
    text += fmt::format(" [{}, {}]", significant(*s->ci_lo), significant(*s->ci_hi));
  return {text, s->verdict == "faster" ? "good" : s->verdict == "slower" ? "bad" : ""};
}

std::vector<HtmlCell> timing_cells(const Measurement* m) {
  if (m == nullptr) return std::vector<HtmlCell>(10);
  const Statistics& s = m->stats;
  const double spread = s.median_ns > 0 ? 100 * s.mad_ns / s.median_ns : 0;
  return {{std::string(to_string(m->regime))},
          {format_time(s.median_ns)},
          {fmt::format("{} to {}", format_time(s.ci_lo_ns), format_time(s.ci_hi_ns))},
          {fmt::format("{:.1f}%", spread)},
          {format_time(s.min_ns)},
          {format_time(s.p95_ns)},
          {m->flops_per_s.value_or(0) > 0 ? format_rate(*m->flops_per_s, "FLOP/s") : ""},
          {m->mem_bw_bytes_per_s ? format_rate(*m->mem_bw_bytes_per_s, "B/s") : ""},
          {m->pct_of_floor ? fmt::format("{:.0f}%", *m->pct_of_floor) : ""},
          {std::to_string(s.n)}};
}

/// ": wide_interval drift", if the status refers to doubts.
std::string doubts_text(const Measurement* m) {
  if (m == nullptr || !is_doubtful(*m)) return "";
  return fmt::format(": {}", fmt::join(*m->stats.doubts, " "));
}

/// The distance from 1 on a logarithmic scale, where 4 and 1/4 are the ends of the colours.
HtmlCell heat_cell(const Speedup& s) {
  const double away = std::log2(*s.speedup_ratio) / 2;
  const int share = static_cast<int>(std::lround(100 * std::min(1.0, std::abs(away))));
  HtmlCell cell = speedup_html(&s);
  cell.text = significant(*s.speedup_ratio) + "x";
  cell.kind = away < 0 ? "heat down" : "heat up";
  cell.style = fmt::format("--share:{}%", share);
  return cell;
}

std::string item(const std::string& text, const std::string& command) {
  return "<li>" + escape_html(text) +
         (command.empty() ? "" : "<br><code>" + escape_html(command) + "</code>") + "</li>\n";
}

}  // namespace

std::string device_name(const RunResult& result) {
  std::string text;
  for (const RunDevice& d : result.devices) text += (text.empty() ? "" : ", ") + d.name;
  return text.empty() ? "no device" : text;
}

std::string summary_table(const RunResult& result) {
  HtmlTable table("Crossover and speedups of every primitive", {{"op", false},
                                                                {"regime", false},
                                                                {"baseline", false},
                                                                {"crossover N"},
                                                                {"threshold"},
                                                                {"best"},
                                                                {"by", false},
                                                                {"in", false},
                                                                {"geomean"},
                                                                {"wins", false}});
  for (const OpSummary& s : result.op_summaries) {
    std::string wins;
    for (const auto& [name, count] : s.strategy_wins)
      wins += fmt::format("{}{} {}", wins.empty() ? "" : ", ", name, count);
    table.add({{s.op},
               {std::string(to_string(s.regime))},
               {std::string(to_string(s.baseline))},
               {count_text(s.crossover_n)},
               {count_text(s.recommended_threshold)},
               {ratio_text(s.best_speedup_ratio)},
               {s.best_strategy},
               {s.best_case},
               {ratio_text(s.geomean_speedup)},
               {wins}});
  }
  return table.is_empty() ? "" : table.render();
}

std::string results_table(const RunResult& result, const std::string& op) {
  HtmlTable table(op + ": all results", {{"case", false},
                                         {"strategy", false},
                                         {"regime", false},
                                         {"median"},
                                         {"95 % interval"},
                                         {"deviation"},
                                         {"least"},
                                         {"95th percentile"},
                                         {"rate"},
                                         {"bandwidth"},
                                         {"of floor"},
                                         {"samples"},
                                         {"vs loop"},
                                         {"vs streams"},
                                         {"vs graph"},
                                         {"vs peer"},
                                         {"error / tolerance"},
                                         {"status", false}});
  const CommonAxes common(result, op);
  for (const ReportRow& row : rows_of(result)) {
    if (row.point->point.op() != op) continue;
    std::vector<HtmlCell> cells{{common.rest_of(row.point->point)}};
    cells.push_back({row.runner == nullptr ? "" : runner_name(row.runner->name, row.is_baseline)});
    for (HtmlCell& cell : timing_cells(row.measurement)) cells.push_back(std::move(cell));
    for (const Speedup* s : row.speedups) cells.push_back(speedup_html(s));
    cells.push_back({row.runner == nullptr ? "" : error_text(*row.runner)});
    const Status status = status_of(row);
    cells.push_back({status_text(row) + doubts_text(row.measurement),
                     status == Status::ok || status == Status::skipped ? "" : "bad"});
    table.add(std::move(cells));
  }
  return table.render("results");
}

std::string heat_table(const std::vector<CaseGroup>& groups, Regime regime, Baseline baseline) {
  std::set<int64_t> counts;
  std::vector<std::string> strategies;
  for (const CaseGroup& group : groups) {
    for (const CaseResult* c : group.cases) {
      for (const Speedup& s : c->speedups) {
        if (s.regime != regime || s.baseline != baseline || !s.speedup_ratio) continue;
        counts.insert(members_of(*c));
        if (std::find(strategies.begin(), strategies.end(), s.strategy) == strategies.end())
          strategies.push_back(s.strategy);
      }
    }
  }
  if (counts.empty()) return "";
  std::vector<HtmlTable::Column> columns{{"strategy", false}, {"case", false}};
  for (const int64_t n : counts) columns.push_back({fmt::format("N {}", n)});
  HtmlTable table(fmt::format("{}: speedup vs {}, regime {}", groups.front().op,
                              to_string(baseline), to_string(regime)),
                  columns);
  for (const std::string& strategy : strategies) {
    for (const CaseGroup& group : groups) {
      std::vector<HtmlCell> cells{{strategy}, {group.rest}};
      cells.resize(columns.size());
      for (const CaseResult* c : group.cases) {
        for (const Speedup& s : c->speedups) {
          const auto column = counts.find(members_of(*c));
          if (s.strategy == strategy && s.regime == regime && s.baseline == baseline &&
              s.speedup_ratio && *s.speedup_ratio > 0 && column != counts.end())
            cells[2 + static_cast<size_t>(std::distance(counts.begin(), column))] = heat_cell(s);
        }
      }
      table.add(std::move(cells));
    }
  }
  return table.render("heatmap");
}

std::string failures_list(const RunResult& result) {
  std::string items;
  for (const ReportRow& row : rows_of(result)) {
    const Status status = status_of(row);
    if (status == Status::ok || status == Status::skipped || !row.opens_runner) continue;
    items += item(fmt::format("{} {} {}: {}", row.point->point.op(), row.point->point.to_string(),
                              row.runner == nullptr ? "" : row.runner->name, status_text(row)),
                  row.point->reproduce);
  }
  for (const auto& [reason, count] : result.impossible_reasons)
    items += item(fmt::format("impossible: {} of the sweep's points: {}", count, reason), "");
  if (!result.complete) items += item("incomplete: the sweep was ended before its last case", "");
  return items.empty() ? "" : "<ul class=\"failures\">\n" + items + "</ul>\n";
}

std::string reproduce_list(const RunResult& result, const std::string& op) {
  std::string items;
  for (const CaseResult& c : result.cases) {
    if (c.point.op() == op && !c.reproduce.empty()) items += item(c.point.to_string(), c.reproduce);
  }
  if (items.empty()) return "";
  return "<details><summary>" + escape_html(op) + ": how to measure each case again</summary><ul>" +
         items + "</ul></details>\n";
}

std::string environment_table(const RunResult& r) {
  HtmlTable table("Environment", {{"fact", false}, {"value", false}});
  table.add({{"run"}, {r.id}});
  table.add({{"command"}, {fmt::format("{}", fmt::join(r.argv, " "))}});
  if (!r.note.empty()) table.add({{"note"}, {r.note}});
  for (const auto& [name, value] : r.context) table.add({{name}, {value}});
  table.add({{"state"},
             {fmt::format("{}, exit code {}, {:.1f} s", r.complete ? "complete" : "incomplete",
                          r.exit_code, r.duration_s)}});
  table.add({{"wbench"}, {r.tool_version + " " + r.git_sha + (r.git_dirty ? " (changed)" : "")}});
  table.add({{"build"},
             {r.build_type + ", " + r.compiler +
              (r.cuda_toolkit.empty() ? ", without CUDA"
                                      : ", CUDA " + r.cuda_toolkit + " for " + r.cuda_archs)}});
  table.add({{"host"},
             {fmt::format("{}, {}, Linux {}, {}, {}", r.hostname, r.os, r.kernel, r.cpu,
                          counted(r.cores, "thread"))}});
  for (const RunDevice& d : r.devices) {
    table.add({{to_string(d.device)},
               {fmt::format("{}, {}, last-level cache {} MiB", d.name,
                            counted(d.num_multiprocessors,
                                    d.device.type == DeviceType::cuda ? "SM" : "thread"),
                            d.last_level_cache_bytes >> 20) +
                (d.uuid.empty() ? "" : fmt::format(", {}, PCI {}", d.uuid, d.pci_bus_id))}});
  }
  const Calibration& c = r.calibration;
  table.add({{"measured ceilings"}, {c.empty_launch_ns > 0 ? ceilings_text(c) : ""}});
  table.add({{"empty launch"}, {c.empty_launch_ns > 0 ? format_time(c.empty_launch_ns) : ""}});
  table.add(
      {{"timer"},
       {c.timer_floor_ns > 0 ? fmt::format("quantum {}, floor {}", format_time(c.timer_quantum_ns),
                                           format_time(c.timer_floor_ns))
                             : ""}});
  table.add({{"sampling"},
             {fmt::format("{}, {} to {}, until intervals are within {}%; seed {}, order {}; "
                          "verify {}",
                          counted(r.config.rounds, "round"), r.config.min_samples,
                          counted(r.config.max_samples, "sample"), r.config.target_ci_pct,
                          r.config.seed, r.config.order_seed, r.config.verify)}});
  return table.render();
}

std::string comparison_table(const Comparison& comparison) {
  HtmlTable table("Candidate against base", {{"case", false},
                                             {"strategy", false},
                                             {"regime", false},
                                             {"base"},
                                             {"candidate"},
                                             {"change"},
                                             {"p, adjusted"},
                                             {"verdict", false},
                                             {"why", false}});
  const auto value = [&](const std::optional<double>& v) {
    return v ? format_metric(*comparison.options.metric, *v) : std::string();
  };
  for (const ComparedCell& cell : comparison.cells) {
    const Judgement& j = cell.judgement;
    const bool has_both = cell.base.geometric_mean && cell.candidate.geometric_mean;
    table.add({{comparison.label(cell)},
               {cell.strategy},
               {std::string(to_string(cell.regime))},
               {value(cell.base.geometric_mean)},
               {value(cell.candidate.geometric_mean)},
               {has_both ? change_text(j) : ""},
               {cell.tests ? fmt::format("{:.3g}", cell.tests->p_adjusted) : ""},
               {std::string(to_string(j.verdict)) + (cell.is_unreliable() ? ", unreliable" : ""),
                j.verdict == Verdict::faster   ? "good"
                : j.verdict == Verdict::slower ? "bad"
                                               : ""},
               {std::string(j.reason)}});
  }
  return table.render("results");
}

}  // namespace wide::bench
