// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/page/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/html.hpp"

namespace wide::bench {

namespace {

constexpr double kWidth = 640, kHeight = 320, kTop = 12, kRight = 20, kBottom = 44;
constexpr double kRowHeight = 26;
constexpr double kCharacter = 7.7;  // width in pixels in the page's small print

/// Maps values of a scale to pixels.
struct Mapping {
  const ScaleFrame& frame;
  bool is_log = false;
  double from = 0, to = 1;
  double operator()(double value) const {
    const auto of = [&](double v) { return is_log ? std::log(v) : v; };
    return from + (to - from) * (of(value) - of(frame.lo)) / (of(frame.hi) - of(frame.lo));
  }
};

std::string color_of(int color) {
  return fmt::format("s{}", color % kNumColors);
}

std::string marker(int color, double x, double y) {
  return fmt::format("<use href=\"#m{}\" x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\"/>",
                     color % kNumMarkers, x, y, color_of(color));
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     escape_html(text));
}

std::string line_at(const char* kind, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                     kind, x1, y1, x2, y2);
}

std::string x_axis(const ChartScale& scale, const Mapping& x, double top, double bottom) {
  std::string out;
  for (const double tick : x.frame.ticks) {
    out += line_at("grid", x(tick), top, x(tick), bottom);
    out += text_at(x(tick), bottom + 16, "middle", format_value(scale.unit, tick));
  }
  return out + text_at((x.from + x.to) / 2, bottom + 36, "middle", scale.label);
}

std::string opening(const Chart& chart, double height) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\">",
      escape_html(chart.title), kWidth, height);
}

std::string series_marks(const Chart& chart, const ChartSeries& s, const Mapping& x,
                         const Mapping& y) {
  std::string path, back, band, marks;
  for (const ChartPoint& p : s.points) {
    if (!is_drawable(chart, p)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.x), y(p.y));
    if (s.mark == ChartSeries::Mark::guide) continue;
    const std::string told =
        fmt::format("{}, {}: {}{}{}", s.name, format_value(chart.x.unit, p.x),
                    format_value(chart.y.unit, p.y), p.note.empty() ? "" : ", ", p.note);
    marks +=
        "<g><title>" + escape_html(told) + "</title>" + marker(s.color, x(p.x), y(p.y)) + "</g>";
    if (!p.lo || !p.hi) continue;
    band += fmt::format("{}{:.1f} {:.1f}", band.empty() ? "M" : "L", x(p.x), y(*p.hi));
    back = fmt::format("L{:.1f} {:.1f}", x(p.x), y(*p.lo)) + back;
  }
  std::string out;
  if (!band.empty())
    out += fmt::format("<path class=\"band {}\" d=\"{}{}Z\"/>", color_of(s.color), band, back);
  if (s.mark != ChartSeries::Mark::dots) {
    const char* kind = s.mark == ChartSeries::Mark::line     ? "line"
                       : s.mark == ChartSeries::Mark::dashed ? "line dashed"
                                                             : "guide";
    out += fmt::format("<path class=\"{} {}\" d=\"{}\"/>", kind, color_of(s.color), path);
  }
  return out + marks;
}

std::string lines_svg(const Chart& chart) {
  const ChartFrame frame = frame_of(chart);
  const double bottom = kHeight - kBottom;
  const Mapping y{frame.y, chart.y.is_log, bottom, kTop};
  size_t widest = 0;
  for (const double tick : frame.y.ticks)
    widest = std::max(widest, format_value(chart.y.unit, tick).size());
  const double left = 28 + kCharacter * static_cast<double>(widest);
  const Mapping x{frame.x, chart.x.is_log, left, kWidth - kRight};
  std::string out = opening(chart, kHeight);
  for (const double tick : frame.y.ticks) {
    out += line_at("grid", left, y(tick), kWidth - kRight, y(tick));
    out += text_at(left - 6, y(tick) + 4, "end", format_value(chart.y.unit, tick));
  }
  out += x_axis(chart.x, x, kTop, bottom);
  out += fmt::format(
      "<text class=\"label\" transform=\"translate(12 {:.0f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>",
      (kTop + bottom) / 2, escape_html(chart.y.label));
  if (chart.reference)
    out += line_at("reference", left, y(*chart.reference), kWidth - kRight, y(*chart.reference));
  for (const ChartSeries& s : chart.series) out += series_marks(chart, s, x, y);
  return out + "</svg>";
}

std::string row_marks(const ChartRow& row, const Mapping& x, double y) {
  std::string out;
  if (row.least && row.most) out += line_at("whisker", x(*row.least), y, x(*row.most), y);
  if (row.lo && row.hi) {
    out += fmt::format(
        "<rect class=\"box {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\"/>",
        color_of(row.color), x(*row.lo), y - 6, std::max(1.0, x(*row.hi) - x(*row.lo)));
  }
  return out + marker(row.color, x(row.value), y);
}

std::string rows_svg(const Chart& chart) {
  const ChartFrame frame = frame_of(chart);
  size_t widest = 0;
  for (const ChartRow& r : chart.rows) widest = std::max(widest, r.name.size());
  const double left = std::min(kWidth / 2, 16 + kCharacter * static_cast<double>(widest));
  const double bottom = kTop + kRowHeight * static_cast<double>(chart.rows.size());
  const Mapping x{frame.x, chart.x.is_log, left, kWidth - kRight - 16};
  std::string out = opening(chart, bottom + kBottom);
  out += x_axis(chart.x, x, kTop, bottom);
  if (chart.reference)
    out += line_at("reference", x(*chart.reference), kTop, x(*chart.reference), bottom);
  double y = kTop + kRowHeight / 2;
  for (const ChartRow& r : chart.rows) {
    const std::string told =
        r.name + ": " + format_value(chart.x.unit, r.value) + (r.note.empty() ? "" : ", ") + r.note;
    out += "<g><title>" + escape_html(told) + "</title>" + text_at(left - 8, y + 4, "end", r.name) +
           row_marks(r, x, y) + "</g>";
    y += kRowHeight;
  }
  return out + "</svg>";
}

}  // namespace

std::string svg_symbols() {
  return "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
         "<circle id=\"m0\" r=\"4\"/><rect id=\"m1\" x=\"-3.6\" y=\"-3.6\" width=\"7.2\" "
         "height=\"7.2\"/>"
         "<path id=\"m2\" d=\"M0 -5L4.6 3.4L-4.6 3.4Z\"/><path id=\"m3\" d=\"M0 -5.4L4 0L0 5.4L-4 "
         "0Z\"/>"
         "</defs></svg>";
}

std::string svg_key(int color) {
  return "<svg class=\"key\" viewBox=\"-6 -6 12 12\" aria-hidden=\"true\">" + marker(color, 0, 0) +
         "</svg>";
}

std::string svg_of(const Chart& chart) {
  return chart.rows.empty() ? lines_svg(chart) : rows_svg(chart);
}

}  // namespace wide::bench
