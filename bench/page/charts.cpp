// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/page/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "bench/report/tables.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

using Mark = ChartSeries::Mark;

std::string titled(const std::string& what, const CaseGroup& group) {
  return group.op + (group.rest.empty() ? "" : " " + group.rest) + ": " + what;
}

bool is_right(const RunnerResult& runner) {
  return runner.status == Status::ok;
}

std::string interval_note(Unit unit, const std::optional<double>& lo,
                          const std::optional<double>& hi) {
  if (!lo || !hi) return "";
  return fmt::format("95 % interval {} to {}", format_value(unit, *lo), format_value(unit, *hi));
}

const Measurement* measured(const RunnerResult& runner, Regime regime) {
  for (const Measurement& m : runner.measurements) {
    if (m.regime == regime) return &m;
  }
  return nullptr;
}

ChartPoint time_point(double x, const Statistics& s) {
  return {x, s.median_ns, s.ci_lo_ns, s.ci_hi_ns,
          interval_note(Unit::time, s.ci_lo_ns, s.ci_hi_ns)};
}

ChartSeries& series_of(Chart& chart, const std::string& name, int color, Mark mark) {
  for (ChartSeries& s : chart.series) {
    if (s.name == name) return s;
  }
  return chart.series.emplace_back(name, color, mark);
}

template <class Visit>
void for_each_runner(const CaseResult& point, const Visit& visit) {
  for (const RunnerResult& r : point.baselines) visit(r, true);
  for (const RunnerResult& r : point.strategies) visit(r, false);
}

std::string dtype_of(const CaseResult& c) {
  for (const auto& entry : c.point.entries()) {
    if (entry.name == "dtype") return catalog::to_string(entry.value);
  }
  return "";
}

}  // namespace

int Palette::of(const std::string& name) {
  return colors_.emplace(name, static_cast<int>(colors_.size())).first->second;
}

int64_t members_of(const CaseResult& point) {
  for (const auto& entry : point.point.entries()) {
    if (entry.name == "n" && std::holds_alternative<int64_t>(entry.value))
      return std::get<int64_t>(entry.value);
  }
  return 0;
}

std::string runner_name(const std::string& name, bool is_baseline) {
  return is_baseline ? "(" + name + ")" : name;
}

std::vector<CaseGroup> groups_of(const RunResult& result, const std::string& op) {
  const CommonAxes common(result, op);
  std::vector<CaseGroup> groups;
  for (const CaseResult& c : result.cases) {
    if (c.point.op() != op) continue;
    std::vector<catalog::Case::Entry> others(c.point.entries().begin(), c.point.entries().end());
    std::erase_if(others, [](const auto& entry) { return entry.name == "n"; });
    const std::string rest = common.rest_of({op, others});
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const CaseGroup& g) { return g.rest == rest; });
    if (group == groups.end()) group = groups.insert(groups.end(), {op, rest, {}});
    group->cases.push_back(&c);
  }
  for (CaseGroup& group : groups) {
    std::stable_sort(group.cases.begin(), group.cases.end(),
                     [](const auto* a, const auto* b) { return members_of(*a) < members_of(*b); });
  }
  return groups;
}

Chart speedup_chart(const CaseGroup& group, Regime regime, Baseline baseline, Palette& palette) {
  Chart chart{
      titled(fmt::format("speedup vs {}, regime {}", to_string(baseline), to_string(regime)),
             group),
      {"N, members", Unit::count, true},
      {"speedup", Unit::ratio, true},
      1.0,
      {},
      {}};
  for (const CaseResult* c : group.cases) {
    for (const Speedup& s : c->speedups) {
      if (s.regime != regime || s.baseline != baseline || !s.speedup_ratio) continue;
      series_of(chart, s.strategy, palette.of(s.strategy), Mark::line)
          .points.push_back({static_cast<double>(members_of(*c)), *s.speedup_ratio, s.ci_lo,
                             s.ci_hi, interval_note(Unit::ratio, s.ci_lo, s.ci_hi)});
    }
  }
  return chart;
}

Chart time_chart(const CaseGroup& group, Regime regime, std::optional<int64_t> crossover,
                 Palette& palette) {
  Chart chart{titled(fmt::format("time, regime {}", to_string(regime)), group),
              {"N, members", Unit::count, true},
              {"time of one call of all members", Unit::time, true},
              std::nullopt,
              {},
              {}};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const CaseResult* c : group.cases) {
    for_each_runner(*c, [&](const RunnerResult& r, bool is_baseline) {
      const Measurement* m = measured(r, regime);
      if (m == nullptr || !is_right(r) || !(m->stats.median_ns > 0)) return;
      const std::string name = runner_name(r.name, is_baseline);
      series_of(chart, name, palette.of(name), is_baseline ? Mark::dashed : Mark::line)
          .points.push_back(time_point(static_cast<double>(members_of(*c)), m->stats));
      least = std::min(least, m->stats.median_ns);
      most = std::max(most, m->stats.median_ns);
    });
  }
  if (crossover && !chart.series.empty()) {
    const auto n = static_cast<double>(*crossover);
    const std::string name = fmt::format("crossover N {}", *crossover);
    chart.series.push_back({name, 0, Mark::guide, {{n, least}, {n, most}}});
  }
  return chart;
}

Chart roofline_chart(const RunResult& result, Regime regime, const std::string& dtype,
                     Palette& palette) {
  Chart chart{fmt::format("roofline, {}, regime {}", dtype, to_string(regime)),
              {"FLOP / byte of the operands", Unit::intensity, true},
              {"rate", Unit::flop_rate, true},
              std::nullopt,
              {},
              {}};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const CaseResult& c : result.cases) {
    if (dtype_of(c) != dtype || !(c.cost.flops > 0) || !(c.cost.bytes() > 0)) continue;
    const double intensity = c.cost.flops / c.cost.bytes();
    for_each_runner(c, [&](const RunnerResult& r, bool is_baseline) {
      const Measurement* m = measured(r, regime);
      if (m == nullptr || !is_right(r) || !m->flops_per_s) return;
      const std::string name = runner_name(r.name, is_baseline);
      series_of(chart, name, palette.of(name), Mark::dots)
          .points.push_back(
              {intensity, *m->flops_per_s, {}, {}, c.point.op() + " " + c.point.to_string()});
      least = std::min(least, intensity);
      most = std::max(most, intensity);
    });
  }
  double roof = 0;
  for (const auto& [name, rate] : result.calibration.flops_per_s)
    roof = name == dtype ? rate : roof;
  const double bandwidth = result.calibration.mem_bw_bytes_per_s;
  if (chart.series.empty() || !(bandwidth > 0)) return chart;
  const double ridge = roof > 0 ? roof / bandwidth : most * 2;
  const double from = std::min(least, ridge) / 2, to = std::max(most, ridge) * 2;
  ChartSeries ceiling{"measured ceilings", 0, Mark::guide, {{from, from * bandwidth}}};
  ceiling.points.push_back({ridge, ridge * bandwidth});
  if (roof > 0) ceiling.points.push_back({to, roof});
  chart.series.push_back(ceiling);
  return chart;
}

Chart distribution_chart(const CaseResult& point, Regime regime, Palette& palette) {
  Chart chart{fmt::format("{} {}: samples, regime {}", point.point.op(), point.point.to_string(),
                          to_string(regime)),
              {"time of one call", Unit::time, true},
              {},
              std::nullopt,
              {},
              {}};
  for_each_runner(point, [&](const RunnerResult& r, bool is_baseline) {
    const Measurement* m = measured(r, regime);
    if (m == nullptr || !is_right(r)) return;
    const Statistics& s = m->stats;
    // A foreign file may say that q1 is 0, which a logarithmic scale never reaches.
    if (!(std::min({s.min_ns, s.q1_ns, s.median_ns, s.q3_ns, s.max_ns}) > 0)) return;
    const std::string name = runner_name(r.name, is_baseline);
    chart.rows.push_back(
        {name, palette.of(name), s.median_ns, s.q1_ns, s.q3_ns, s.min_ns, s.max_ns,
         fmt::format("quartiles {} to {}, range {} to {}, {}", format_value(Unit::time, s.q1_ns),
                     format_value(Unit::time, s.q3_ns), format_value(Unit::time, s.min_ns),
                     format_value(Unit::time, s.max_ns), counted(s.n, "sample")),
         &m->samples_ns});
  });
  return chart;
}

Chart comparison_chart(const Comparison& comparison) {
  Chart chart{fmt::format("change of {}, candidate against base", comparison.options.metric->name),
              {"change", Unit::percent, false},
              {},
              0.0,
              {},
              {}};
  std::vector<const ComparedCell*> cells;
  for (const ComparedCell& cell : comparison.cells) {
    if (cell.base.median && cell.candidate.median && cell.judgement.verdict != Verdict::invalid)
      cells.push_back(&cell);
  }
  std::stable_sort(cells.begin(), cells.end(), [](const auto* a, const auto* b) {
    return std::abs(a->judgement.change_pct) > std::abs(b->judgement.change_pct);
  });
  cells.resize(std::min(cells.size(), kMaxComparedRows));
  for (const ComparedCell* cell : cells) {
    const Judgement& j = cell->judgement;
    const int color = j.verdict == Verdict::faster   ? 0
                      : j.verdict == Verdict::slower ? 1
                                                     : 7;  // grey
    chart.rows.push_back(
        {fmt::format("{} {} {}", comparison.label(*cell), cell->strategy, to_string(cell->regime)),
         color,
         j.change_pct,
         j.ci_lo_pct,
         j.ci_hi_pct,
         {},
         {},
         std::string(to_string(j.verdict)),
         nullptr});
  }
  return chart;
}

Chart history_chart(const std::vector<const HistorySeries*>& series, Palette& palette) {
  Chart chart;
  if (series.empty()) return chart;
  const HistoryPoint& any = series.front()->last;
  chart.title = fmt::format("{} {}: medians over runs, regime {}, {}", any.op, any.axes, any.regime,
                            any.device);
  chart.x = {"run, oldest first", Unit::count, false};
  chart.y = {"time of one call", Unit::time, false};
  // Ids begin with the time, so their order is that of the runs.
  std::set<std::string> runs;
  for (const HistorySeries* s : series) runs.insert(s->runs.begin(), s->runs.end());
  if (runs.size() < 2) return chart;
  for (const HistorySeries* s : series) {
    const std::string& name = s->last.runner;
    ChartSeries line{name, palette.of(name), Mark::line, {}};
    ChartPoint point;
    const auto noise = noise_band(*s);
    if (noise) {
      const double factor = 1 + noise->floor_pct / 100;
      point.lo = noise->centre_ns / factor;
      point.hi = noise->centre_ns * factor;
    }
    for (size_t i = 0; i < s->runs.size(); ++i) {
      point.x = static_cast<double>(std::distance(runs.begin(), runs.find(s->runs[i])) + 1);
      point.y = s->medians_ns[i];
      point.note = "run " + s->runs[i];
      if (noise && !(point.y >= *point.lo && point.y <= *point.hi))
        point.note += fmt::format(", beyond the noise floor of {:.1f}%", noise->floor_pct);
      line.points.push_back(point);
    }
    std::stable_sort(line.points.begin(), line.points.end(),
                     [](const auto& a, const auto& b) { return a.x < b.x; });
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace wide::bench
