// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `show`: a saved result as it was printed originally, or in another tool's format. Needs no
// device.
#include <algorithm>
#include <ostream>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/history/names.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/exports.hpp"
#include "bench/report/report.hpp"
#include "bench/report/terminal.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The purpose of the run, derived from its contents.
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

int export_result(const std::vector<std::string>& files, const OutputOptions& output,
                  std::ostream& out) {
  if (files.size() != 1) {
    throw Error(ErrorCode::invalid_argument,
                "--export: " + std::to_string(files.size()) + " results, expected one");
  }
  std::vector<Export> exports;
  for (const std::string& text : output.exports) exports.push_back(parse_export(text));
  NamedFiles inputs;
  add_results(inputs, "the result", files.front());
  require_outputs(files_of(output), inputs);
  const bool needs_samples = std::any_of(exports.begin(), exports.end(), [](const Export& asked) {
    return asked.format->needs_samples;
  });
  const RunResult result = load_named_result(files.front(), output.store,
                                             needs_samples ? Samples::needed : Samples::if_there);
  for (const Export& asked : exports)
    write_document(export_text(*asked.format, result), asked.path, out);
  return kSuccess;
}

}  // namespace

int command_show(const GlobalOptions& global, const std::vector<std::string>& files,
                 const OutputOptions& output, std::ostream& out) {
  if (!output.exports.empty()) return export_result(files, output, out);
  bool has_case = false;
  for (const std::string& file : files) {
    const RunResult result = load_named_result(file, output.store, Samples::if_there);
    has_case = has_case || !result.cases.empty();
    if (files.size() > 1) out << file << "\n";
    out << report_text(result, {output_width(), wants_color(global.color), output.top,
                                output.explain, content_of(result), global.verbose,
                                parse_metrics(output.metrics), parse_counters(output.counters)});
    if (result.cases.empty()) out << "no case\n";
  }
  return has_case ? kSuccess : kNothingRan;
}

}  // namespace wide::bench
