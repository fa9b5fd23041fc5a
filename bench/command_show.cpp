// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `show`: a saved result as it was printed when it was made. Needs no device.
#include <ostream>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/report/report.hpp"
#include "bench/report/terminal.hpp"
#include "bench/result_json.hpp"

namespace wide::bench {

namespace {

/// What the run was made for, by what it has.
ReportContent content_of(const RunResult& result) {
  ReportContent content = ReportContent::checks;
  for (const CaseResult& c : result.cases) {
    for (const RunnerResult& r : c.strategies) {
      if (!r.measurements.empty()) return ReportContent::times;
      if (!r.launches.empty()) content = ReportContent::counters;
    }
  }
  return content;
}

}  // namespace

int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out) {
  for (const std::string& file : files) {
    const RunResult result = load_result(file);
    if (files.size() > 1) out << file << "\n";
    out << report_text(result, {output_width(), wants_color(global.color), output.top,
                                output.explain, content_of(result)});
  }
  return kSuccess;
}

}  // namespace wide::bench
