// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"

#include "bench/cli/completion.hpp"
#include "bench/cli/help.hpp"
#include "bench/command/options.hpp"

namespace wide::bench {

namespace {

std::string suite_footer() {
  return R"(A suite is a JSON file of what `run` takes (bench/suite/suite.schema.json), or one of `wbench suite list` by its
name. All of it is checked before it runs; an entry that fails does not stop the rest.

Meaning of the columns:
  cases, ok, ..  the entry's cases, by their outcome
  thresholds     met / all; one is missed where a case's 95 % interval lies beyond it, undecided where the
                 bound lies within, where there are fewer than six rounds, or where no case has a
                 value to compare
  speedup        geometric mean, over cases, of the fastest strategy's
  outcome        by its exit code: ok 0, failed 1, refused 2, wrong 3, missed 4, undecided 5 (with
                 --strict), nothing_ran 6, no_device 7; the suite's is the one that wins

)" + exit_codes();
}

}  // namespace

void add_suite(CLI::App& app, SuiteOptions& o) {
  app.add_option("what", o.what, "what to do: list, validate or run")
      ->check(one_of({"list", "validate", "run"}))
      ->capture_default_str();
  app.add_option("suites", o.suites, "names or files, or - for standard input; run: one");
  app.add_option("--entry", o.entries, "run: only these entries");
  app.add_option("-d,--device", o.device, "run: cpu, cuda or cuda:K, whatever the suite says");
  app.add_option("--json", o.json,
                 "run: write the outcome to FILE, or - for standard output; list: -");
  app.add_option("--results", o.results, "run: write each entry's result to FOLDER/ENTRY.json");
  app.add_flag("-s,--save", o.save,
               "run: keep results in the history, and in results/<id>-<suite>");
  app.add_option("--store", o.store, "the history's; see run --store");
  app.add_flag("--strict", o.is_strict, "run: an undecided threshold makes the exit code 5");
  app.add_flag("--dry-run", o.dry_run, "run: print the cases and stop");
  app.footer(suite_footer());
}

}  // namespace wide::bench
