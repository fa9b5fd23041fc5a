// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"
#include "bench/cli/help.hpp"
#include "bench/command/options.hpp"

namespace wide::bench {

namespace {

std::string report_footer() {
  return R"(The page is self-contained, without a network or a server: speedups against N with 95 %
intervals, heat maps, times and where they cross, rooflines, distributions of samples, what failed and
the environment. `wbench info` says whether its charts answer to mouse and keys.

)" + exit_codes();
}

}  // namespace

void add_report(CLI::App& app, ReportArguments& a) {
  app.add_option("results", a.results,
                 "results, folders of results, - for standard input, or runs of the history")
      ->required();
  app.add_option("--html", a.html, "write the page to FILE, or - for standard output");
  app.add_option("--md", a.md, "write the tables as Markdown to FILE, or - for standard output");
  app.add_option("--plots", a.plots,
                 "charts of the page: heat, speedup, time, distribution, roofline, comparison, "
                 "history; all or none")
      ->capture_default_str();
  const std::string offline = "no effect: the page never loads anything anyway";
  app.add_flag("--offline", offline);
  app.add_option("--compare", a.compare,
                 "an earlier result, or a folder of them: what has changed since");
  app.add_option("--metric", a.metric, "of the comparison; see wbench list metrics")
      ->capture_default_str();
  app.add_option("--threshold", a.threshold, "of the comparison: as wbench compare has it")
      ->capture_default_str();
  app.add_flag("--history", a.with_history, "how the history's runs of the same cases changed");
  app.footer(report_footer());
}

}  // namespace wide::bench
