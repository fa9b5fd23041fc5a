// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"

#include "bench/cli/cli_numbers.hpp"
#include "bench/cli/completion.hpp"
#include "bench/command/options.hpp"
#include "bench/report/exports.hpp"

namespace wide::bench {

CLI::Option* add_store(CLI::App& app, std::string& store) {
  return app.add_option(
      "--store", store,
      "the history: FOLDER, or jsonl:FOLDER; default: WBENCH_HISTORY, or results");
}

CLI::Option* add_exports(CLI::App& app, OutputOptions& o) {
  std::string names;
  for (const ExportFormat& format : export_formats())
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  return app.add_option("--export", o.exports, "FORMAT=FILE, or FORMAT=-; of " + names);
}

void add_output(CLI::App& app, OutputOptions& o) {
  app.add_option("--json", o.json, "write the result as JSON to FILE, or - for standard output")
      ->group("Output");
  app.add_option("-o,--output", o.json, "the same as --json FILE")->group("Output");
  app.add_option("--csv", o.csv, "write a CSV table")->group("Output");
  app.add_option("--md", o.md, "write a Markdown table")->group("Output");
  app.add_option("--junit", o.junit, "write JUnit's XML: a test per case and strategy")
      ->group("Output");
  add_exports(app, o)->group("Output");
  app.add_option("--samples", o.samples,
                 "where --json FILE and --save put samples: inline, in a sidecar "
                 "FILE.samples.f64le, or none; "
                 "auto: a sidecar for more than 4096 of one measurement or 65536 in all")
      ->group("Output")
      ->check(one_of({"auto", "inline", "sidecar", "none"}))
      ->capture_default_str();
  app.add_flag("-s,--save", o.save, "save as results/<id>-<op>.json, and in the history")
      ->group("Output");
  app.add_option(
         "--events", o.events,
         "write each time and each case to FILE as it ends, a line of JSON; `show` reads the cases")
      ->group("Output");
  app.add_option("--tag", o.tag, "save under this tag in the history: @TAG")->group("Output");
  add_store(app, o.store)->group("Output");
  app.add_option("--note", o.note, "a sentence stored in the result")->group("Output");
  app.add_option("--context", o.context, "NAME=VALUE stored in the result, such as a job's number")
      ->group("Output");
  app.add_option("-t,--top", o.top, "only the N largest speedups")->group("Output")->check(kCount);
  app.add_flag("--explain", o.explain, "why each strategy was chosen, and each row's command")
      ->group("Output");
}

void add_metrics(CLI::App& app, OutputOptions& o) {
  app.add_option("--metrics", o.metrics,
                 "columns of the table: \"time,of floor,speedup\", and those that -v adds; or all")
      ->group("Output");
  app.add_flag_callback(
         "--roofline", [&o] { o.metrics = "time,rate,bandwidth,of floor,bound"; },
         "the same as --metrics \"time,rate,bandwidth,of floor,bound\"")
      ->group("Output");
}

void add_counters(CLI::App& app, OutputOptions& o) {
  app.add_option(
         "--counters", o.counters,
         "columns of what the simulated GPU counts: \"instructions,bytes,conflicts\", or all; see "
         "`wbench inspect --help`")
      ->group("Output");
}

}  // namespace wide::bench
