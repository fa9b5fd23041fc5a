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

int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out) {
  for (const std::string& file : files) {
    const RunResult result = load_result(file);
    bool was_timed = false;
    for (const CaseResult& c : result.cases) {
      for (const RunnerResult& r : c.strategies) was_timed = was_timed || !r.measurements.empty();
    }
    if (files.size() > 1) out << file << "\n";
    out << report_text(result, {output_width(), wants_color(global.color), output.top,
                                output.explain, !was_timed});
  }
  return kSuccess;
}

}  // namespace wide::bench
