// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `report`: results as a page for people. Needs no device, and neither does who reads the page.
#include <ostream>
#include <set>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/history/names.hpp"
#include "bench/report/page.hpp"
#include "bench/running.hpp"
#include "host/core/file.hpp"

namespace wide::bench {

namespace {

/// What the history knows of the cases in these results.
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

}  // namespace

int command_report(const ReportArguments& arguments, std::ostream& out, std::ostream& err) {
  PageContent content;
  for (const std::string& name : arguments.results) {
    for (RunResult& result : load_named_results(name, arguments.store))
      content.results.push_back(std::move(result));
  }
  if (!arguments.compare.empty()) {
    CompareOptions options;
    options.metric = &find_measured_metric(arguments.metric);
    options.threshold_pct = parse_percent("--threshold", arguments.threshold);
    const std::vector<RunResult> base = load_named_results(arguments.compare, arguments.store);
    content.comparison = compare(base, content.results, options);
  }
  if (arguments.with_history) content.history = history_of(content.results, arguments.store);
  size_t num_cases = 0;
  for (const RunResult& result : content.results) num_cases += result.cases.size();
  const std::string page = report_page(content);
  if (arguments.html == "-") {
    out << page;
  } else {
    write_file(arguments.html, page);
  }
  if (num_cases > 0) return kSuccess;
  err << "wbench: report: no result has a case\n";
  return kNothingRan;
}

}  // namespace wide::bench
