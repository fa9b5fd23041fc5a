// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `report`: results as a page for people. Neither the command nor the page needs a device.
#include <algorithm>
#include <optional>
#include <ostream>
#include <set>

#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/running.hpp"
#include "bench/compare/notes.hpp"
#include "bench/compare/verdicts.hpp"
#include "bench/history/names.hpp"
#include "bench/page/page.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/report.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The history of the cases in these results.
std::vector<HistorySeries> history_of(const std::vector<RunResult>& results,
                                      const std::string& store) {
  std::set<std::string> cases;
  for (const RunResult& result : results) {
    for (const CaseResult& c : result.cases) cases.insert(c.case_id);
  }
  std::vector<HistorySeries> all = series_of(open_history(store_or_default(store), true)->points());
  std::erase_if(all, [&](const HistorySeries& s) { return !cases.contains(s.last.case_id); });
  return all;
}

std::optional<std::set<std::string>> plots_of(const std::string& list) {
  if (list == "all") return std::nullopt;
  std::set<std::string> plots;
  if (list == "none") return plots;
  for (const std::string& name : parse_list("plots", list)) {
    if (name == "none" || name == "all")
      throw Error(
          ErrorCode::invalid_argument,
          "--plots: \"" + list + "\": " + name + " stands alone, expected " + name + " or charts");
    const auto known = plot_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorCode::invalid_argument,
                  "--plots: " + catalog::unknown_name_message("plot", name, known));
    plots.insert(name);
  }
  return plots;
}

/// Standard output takes only one document, as does a file.
void check_outputs(const ReportArguments& a) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "report: " + message);
  };
  if (a.html.empty() && a.md.empty()) refuse("neither --html nor --md is given, expected one");
  if (a.html == "-" && a.md == "-") refuse("standard output takes one of --html - and --md -");
  const auto num_stdin =
      std::count(a.results.begin(), a.results.end(), "-") + (a.compare == "-" ? 1 : 0);
  if (num_stdin > 1)
    refuse("standard input is given " + std::to_string(num_stdin) + " times, expected once");
  if (a.html.empty() && a.with_history) refuse("--history is of --html FILE, which is not given");
  NamedFiles inputs;
  for (const std::string& name : a.results) add_results(inputs, "the result", name);
  if (!a.compare.empty()) add_results(inputs, "--compare", a.compare);
  require_outputs({{"--html", a.html}, {"--md", a.md}}, inputs);
}

/// The results' tables, one after another.
std::string markdown_of(const PageContent& content) {
  std::string text;
  if (content.comparison) text += compare_markdown(*content.comparison, CompareView()) + "\n";
  for (size_t i = 0; i < content.results.size(); ++i)
    text += (i == 0 ? "" : "\n") + report_markdown(content.results[i]);
  return text;
}

}  // namespace

int command_report(const ReportArguments& arguments, std::ostream& out, std::ostream& err) {
  check_outputs(arguments);
  CompareOptions options;
  options.metric = &find_measured_metric(arguments.metric);
  PageContent content;
  content.plots = plots_of(arguments.plots);
  for (const std::string& name : arguments.results) {
    for (RunResult& result : load_named_results(name, arguments.store))
      content.results.push_back(std::move(result));
  }
  if (!arguments.compare.empty()) {
    options.threshold_pct = parse_threshold(arguments.threshold, *options.metric);
    const std::vector<RunResult> base = load_named_results(arguments.compare, arguments.store);
    const std::string shared = shared_runs_note(base, content.results);
    content.comparison = compare(base, content.results, options);
    if (!shared.empty()) content.comparison->notes.push_back(shared);
  }
  if (arguments.with_history) content.history = history_of(content.results, arguments.store);
  size_t num_cases = 0;
  for (const RunResult& result : content.results) num_cases += result.cases.size();
  if (!arguments.html.empty()) write_document(report_page(content), arguments.html, out);
  if (!arguments.md.empty()) write_document(markdown_of(content), arguments.md, out);
  if (num_cases > 0) return kSuccess;
  err << "wbench: report: no result has a case\n";
  return kNothingRan;
}

}  // namespace wide::bench
