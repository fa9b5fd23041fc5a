// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/page/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "bench/document/json_number.hpp"
#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxTicks = 6;
constexpr size_t kMaxCounts = 12;

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::count:
      return "count";
    case Unit::time:
      return "time";
    case Unit::ratio:
      return "ratio";
    case Unit::percent:
      return "percent";
    case Unit::intensity:
      return "intensity";
    case Unit::flop_rate:
      return "flop_rate";
  }
  return "";
}

const char* name_of(ChartSeries::Mark mark) {
  switch (mark) {
    case ChartSeries::Mark::line:
      return "line";
    case ChartSeries::Mark::dashed:
      return "dashed";
    case ChartSeries::Mark::dots:
      return "dots";
    case ChartSeries::Mark::guide:
      return "guide";
  }
  return "";
}

ScaleFrame frame(const ChartScale& scale, const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  ScaleFrame frame{*least, *most, {}};
  if (scale.is_log) {
    const double more = *least < *most ? std::pow(*most / *least, 0.06) : 1.5;
    frame.lo /= more;
    frame.hi *= more;
  } else {
    const double more =
        *least < *most ? (*most - *least) * 0.06 : std::max(1.0, std::abs(*least) * 0.5);
    frame.lo -= more;
    frame.hi += more;
  }
  // An edited file may have numbers whose room is beyond doubles.
  using Limits = std::numeric_limits<double>;
  frame.lo = std::max(frame.lo, scale.is_log ? Limits::min() : Limits::lowest());
  frame.hi = std::min(frame.hi, Limits::max());
  // Counts are few, and readers look for those that were measured.
  const std::set<double> counts(values.begin(), values.end());
  frame.ticks = scale.unit == Unit::count && counts.size() <= kMaxCounts
                    ? std::vector<double>(counts.begin(), counts.end())
                    : ticks_between(frame.lo, frame.hi, scale.is_log, kMaxTicks);
  return frame;
}

Json scale(const ChartScale& s, const ScaleFrame& frame) {
  return {{"label", s.label},
          {"unit", name_of(s.unit)},
          {"log", s.is_log},
          {"domain", {frame.lo, frame.hi}},
          {"ticks", frame.ticks}};
}

}  // namespace

bool is_drawable(const Chart& chart, const ChartPoint& point) {
  const auto fits = [](const ChartScale& s, double value) {
    return std::isfinite(value) && (!s.is_log || value > 0);
  };
  return fits(chart.x, point.x) && fits(chart.y, point.y) &&
         (!point.lo || fits(chart.y, *point.lo)) && (!point.hi || fits(chart.y, *point.hi));
}

bool Chart::is_empty() const {
  return rows.empty() && std::none_of(series.begin(), series.end(), [&](const ChartSeries& s) {
           return s.mark != ChartSeries::Mark::guide &&
                  std::any_of(s.points.begin(), s.points.end(),
                              [&](const ChartPoint& p) { return is_drawable(*this, p); });
         });
}

ChartFrame frame_of(const Chart& chart) {
  std::vector<double> xs, ys;
  for (const ChartSeries& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (!is_drawable(chart, p)) continue;
      xs.push_back(p.x);
      for (const double value : {p.y, p.lo.value_or(p.y), p.hi.value_or(p.y)}) ys.push_back(value);
    }
  }
  for (const ChartRow& r : chart.rows) {
    for (const auto& value : {std::optional(r.value), r.lo, r.hi, r.least, r.most}) {
      if (value) xs.push_back(*value);
    }
  }
  if (chart.reference) (chart.rows.empty() ? ys : xs).push_back(*chart.reference);
  return {frame(chart.x, xs), frame(chart.y, ys)};
}

std::vector<double> ticks_between(double lo, double hi, bool is_log, int most) {
  std::vector<double> ticks;
  if (is_log && hi / lo > 3) {
    const std::vector<std::vector<double>> steps{{1, 2, 5}, {1, 3}, {1}};
    for (const auto& factors : steps) {
      ticks.clear();
      for (double power = std::floor(std::log10(lo)); power <= std::log10(hi); ++power) {
        for (const double factor : factors) {
          const double tick = factor * std::pow(10, power);
          if (tick >= lo && tick <= hi) ticks.push_back(tick);
        }
      }
      if (static_cast<int>(ticks.size()) <= most) break;
    }
    // Decades, thinned out to this many.
    const size_t stride = ticks.size() / static_cast<size_t>(most + 1) + 1;
    for (size_t i = 0; i * stride < ticks.size(); ++i) ticks[i] = ticks[i * stride];
    ticks.resize((ticks.size() + stride - 1) / stride);
    if (ticks.size() >= 3) return ticks;
    ticks.clear();  // too few say less than even steps
  }
  const double rough = (hi - lo) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5., 2., 1.}) {
    if (factor * power >= rough) step = factor * power;
  }
  const auto first = static_cast<int64_t>(std::ceil(lo / step));
  for (int64_t i = first; static_cast<double>(i) * step <= hi; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

Json to_json(const Chart& chart) {
  Json series = Json::array(), rows = Json::array();
  for (const ChartSeries& s : chart.series) {
    Json points = Json::array();
    for (const ChartPoint& p : s.points) {
      if (!is_drawable(chart, p)) continue;
      points.push_back({{"x", p.x},
                        {"y", p.y},
                        {"lo", json_number(p.lo)},
                        {"hi", json_number(p.hi)},
                        {"note", p.note}});
    }
    series.push_back(
        {{"name", s.name}, {"color", s.color}, {"mark", name_of(s.mark)}, {"points", points}});
  }
  for (const ChartRow& r : chart.rows) {
    rows.push_back({{"name", r.name},
                    {"color", r.color},
                    {"value", json_number(r.value)},
                    {"lo", json_number(r.lo)},
                    {"hi", json_number(r.hi)},
                    {"least", json_number(r.least)},
                    {"most", json_number(r.most)},
                    {"note", r.note},
                    {"samples", r.samples != nullptr ? Json(*r.samples) : Json::array()}});
  }
  const ChartFrame frame = frame_of(chart);
  return {{"title", chart.title},
          {"x", scale(chart.x, frame.x)},
          {"y", scale(chart.y, frame.y)},
          {"reference", json_number(chart.reference)},
          {"series", series},
          {"rows", rows}};
}

std::string format_value(Unit unit, double value) {
  switch (unit) {
    case Unit::count:
      return fmt::format("{:g}", value);
    case Unit::time:
      return format_time(value);
    case Unit::ratio:
      return significant(value) + "x";
    case Unit::percent:
      return fmt::format("{:+.1f}%", value);
    case Unit::intensity:
      return significant(value);
    case Unit::flop_rate:
      return format_rate(value, "FLOP/s");
  }
  return "";
}

}  // namespace wide::bench
