// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A chart as plain data, defined once and drawn twice: by svg.cpp into the page, so that it needs
// no script, and on top of that by bench/page/script if the build has that script.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace wide::bench {

enum class Unit : uint8_t { count, time, ratio, percent, intensity, flop_rate };

struct ChartScale {
  std::string label;
  Unit unit = Unit::count;
  bool is_log = false;  ///< values that are not positive are left out
};

struct ChartPoint {
  double x = 0, y = 0;
  std::optional<double> lo{}, hi{};  ///< the band: a 95 % interval of y, or the noise band
  std::string note{};                ///< additional text for a reader of this point
};

struct ChartSeries {
  enum class Mark : uint8_t { line, dashed, dots, guide };
  std::string name;
  int color = 0;
  Mark mark = Mark::line;
  std::vector<ChartPoint> points;  ///< ascending in x
};

/// A row of a chart of distributions or intervals, along x.
struct ChartRow {
  std::string name;
  int color = 0;
  double value = 0;
  std::optional<double> lo, hi;       ///< the box: quartiles, or a 95 % interval
  std::optional<double> least, most;  ///< the whiskers
  std::string note;
  const std::vector<double>* samples = nullptr;
};

/// Has series or rows, never both.
struct Chart {
  std::string title;
  ChartScale x, y;                  ///< y is unused by rows
  std::optional<double> reference;  ///< the value of no change: of y, or of x for rows
  std::vector<ChartSeries> series;
  std::vector<ChartRow> rows;

  bool is_empty() const;
};

/// The part of a scale that is shown: room for all values and a little more, never empty.
struct ScaleFrame {
  double lo = 0, hi = 1;
  std::vector<double> ticks;
};
struct ChartFrame {
  ScaleFrame x, y;
};
/// For a chart that is not empty.
ChartFrame frame_of(const Chart& chart);

/// Round values between `lo` and `hi`: 1, 2 and 5 times powers of ten, about `most` at most.
std::vector<double> ticks_between(double lo, double hi, bool is_log, int most);

nlohmann::ordered_json to_json(const Chart& chart);

/// "12.3 us", "1.08x", "+5.1%", "4.81 TFLOP/s", "16".
std::string format_value(Unit unit, double value);

/// Whether a point and its interval can be drawn on these scales.
bool is_drawable(const Chart& chart, const ChartPoint& point);

}  // namespace wide::bench
