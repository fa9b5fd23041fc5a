// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `compare`: whether a candidate's results are slower than a base's. Needs no device.
#include <ostream>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/compare/rerun.hpp"
#include "bench/compare/verdicts.hpp"
#include "bench/history/names.hpp"
#include "bench/interrupt.hpp"
#include "bench/report/terminal.hpp"
#include "bench/running.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// Both sides: as saved, or as measured now.
std::pair<std::vector<RunResult>, std::vector<RunResult>> runs_of(const CompareArguments& a,
                                                                  std::ostream& err) {
  if (a.is_rerun) return run_by_turns({a.base, a.candidate, a.run_arguments, a.repeat}, err);
  if (!a.run_arguments.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "compare: \"" + a.run_arguments.front() + "\" is one too many; see --rerun");
  }
  return {load_named_results(a.base, a.store), load_named_results(a.candidate, a.store)};
}

CompareOptions compare_options(const CompareArguments& a) {
  CompareOptions options;
  options.metric = &find_measured_metric(a.metric);
  options.threshold_pct = parse_percent("--threshold", a.threshold);
  options.alpha = a.alpha;
  options.adjusts_p = a.fdr == "bh";
  if (a.noise_floor == "none") options.noise_floor_pct = 0;
  if (a.noise_floor != "none" && a.noise_floor != "runs")
    options.noise_floor_pct = parse_percent("--noise-floor", a.noise_floor);
  return options;
}

std::string document_of(const Comparison& comparison, const CompareArguments& a,
                        const CompareView& view, const FailOn& fail_on) {
  if (a.format == "md") return compare_markdown(comparison, view);
  if (a.format == "json") return compare_json(comparison, fail_on);
  if (a.format == "junit") return compare_junit(comparison, fail_on);
  if (a.format == "github") return compare_github(comparison, fail_on);
  return compare_text(comparison, view);
}

}  // namespace

int command_compare(const GlobalOptions& global, const CompareArguments& arguments,
                    std::ostream& out, std::ostream& err) {
  const CompareOptions options = compare_options(arguments);
  const FailOn fail_on = parse_fail_on(arguments.fail_on);
  const auto [base, candidate] = runs_of(arguments, err);
  if (is_interrupted()) return kInterrupted;
  const Comparison comparison = compare(base, candidate, options);
  if (comparison.base_device != comparison.candidate_device && !arguments.ignore_device) {
    err << "wbench: compare: base ran on " << comparison.base_device << ", candidate on "
        << comparison.candidate_device << "; --ignore-device compares them all the same\n";
    return kEnvironment;
  }
  const CompareView view{output_width(), wants_color(global.color), arguments.all,
                         arguments.explain};
  const std::string document = document_of(comparison, arguments, view, fail_on);
  if (arguments.output.empty() || arguments.output == "-") {
    out << document;
  } else {
    write_file(arguments.output, document);
    out << summary_line(comparison) << "\n";
  }
  const int code = exit_code_of(comparison, fail_on);
  if (code == kNothingRan) err << "wbench: compare: no cell is in both\n";
  return code;
}

}  // namespace wide::bench
