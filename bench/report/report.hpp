// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result as text for people, CSV or Markdown. Uses the data alone, so a saved result prints
// as it did when it was made, on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

enum class ReportContent : uint8_t { times, checks, counters };

struct ReportOptions {
  int width = 120;
  bool has_color = false;
  int64_t top = 0;       ///< only the rows of this many largest speedups; 0: all
  bool explain = false;  ///< why each strategy was chosen, and each case's command
  ReportContent content = ReportContent::times;
  bool details = false;  ///< the method of measurement, launches, kernels, energy, clocks, memory
  std::vector<std::string> metrics{};   ///< columns of times, from known_metrics(); empty: usual
  std::vector<std::string> counters{};  ///< columns of counters, by parse_counters()
};

std::string report_text(const RunResult& result, const ReportOptions& options);
/// Columns of times and of details, by their titles; "speedup" is those against all baselines.
std::vector<std::string> known_metrics();
/// "time,of floor,speedup" as titles. Throws invalid_argument with the nearest names.
std::vector<std::string> parse_metrics(const std::string& list);
/// "bytes,conflicts": columns of the simulated GPU's counters. Throws as above.
std::vector<std::string> parse_counters(const std::string& list);
std::string report_csv(const RunResult& result);
std::string report_markdown(const RunResult& result);

/// "4.81 TB/s, 53.1 TFLOP/s fp32, ..": what floors are computed with.
std::string ceilings_text(const Calibration& calibration);

/// "12.3 us", three significant digits; "4.81 TB/s" and the like by format_rate.
std::string format_time(double ns);
std::string format_rate(double per_second, const char* unit);

}  // namespace wide::bench
