// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"

#include "bench/cli/cli_numbers.hpp"
#include "bench/cli/completion.hpp"
#include "bench/cli/help.hpp"
#include "bench/command/options.hpp"

namespace wide::bench {

namespace {

std::string compare_footer() {
  return R"(BASE and CAND are results, the history's names of them, or folders of results: one file for every run of the same build;
or wbench compare --rerun EXE_A EXE_B -- --op linear --n 4,8: two builds run by turns.

From five runs a side, a cell is FASTER or SLOWER where the 95 % interval of the change, over runs,
lies beyond the threshold, the change exceeds the noise floor, and p < alpha, the probability that chance alone
makes it: by a t test with variances moderated by all cells, adjusted over the sweep. SAME where the
interval lies within the threshold, else AMBIGUOUS. With fewer runs nothing is the SAME, and what is not
clearly apart, or of which no noise floor is known, or, unless --noise-floor gives it, of which a run is
unreliable, is AMBIGUOUS; the history's floor is then 1.5 times the most that two runs of one commit differ by.
Where the sides' SM clocks differ by more than 1 %, FASTER and SLOWER must hold in cycles, too.
Times are the runs' geometric means, and the change is between these.
--method  what is reported beside it. auto: Mann-Whitney where a side is not normal, else Welch where variances differ, else Student;
          mwu, welch, student: that test; interval: none. The interval is Welch's of the log ratio, with
          bootstrap a seeded BCa bootstrap's, which is narrower where runs are few; its tests are auto's.
A cell is unreliable where a run of either side has doubts (see run --help): that is shown, but from five
runs a side decides only with --fail-on unreliable.
Cold calls are compared where --cache, --l2-factor and, for L2s of one size, the number of buffers that are
rotated over agree, and a flush precedes one call or several on both sides; else they are INVALID:
measured_otherwise; cells of which the sides count other work are: other_work. --rerun ends with an interrupt,
or with a run's --time-limit: what both sides have finished is compared, and the exit code is 130 or 124.
Severity, by the worse end of the interval: mild from 5 %, moderate from 10 %, severe from 20 %.

)" + exit_codes();
}

}  // namespace

void add_compare(CLI::App& app, CompareArguments& a) {
  app.add_option("base", a.base, "result, folder of results, or executable")->required();
  app.add_option("candidate", a.candidate, "what is compared with it, one of the same")->required();
  app.add_option("arguments", a.run_arguments, "with --rerun, after --: what both executables run");
  app.add_flag("--rerun", a.is_rerun, "BASE and CAND are executables of wbench: run them by turns");
  app.add_option("--repeat", a.repeat, "runs of each executable")
      ->check(number_check(1, false, 1000, "an integer from 1 to 1000"))
      ->capture_default_str();
  app.add_option("--metric", a.metric, "one that wbench list metrics calls compared")
      ->capture_default_str();
  app.add_option(
         "--threshold", a.threshold,
         "changes within it do not count: a percentage, of a metric that --metric may name as "
         "METRIC=PERCENT, or several, with commas")
      ->capture_default_str();
  app.add_option("--noise-floor", a.noise_floor,
                 "runs: twice the runs' deviation in the median cell; history: in the cell's own "
                 "earlier runs of the same commit, as history noise has it, where there are three; "
                 "auto: history, and runs in "
                 "cells that it has too little of and with --rerun; a percentage; or none")
      ->capture_default_str();
  app.add_option("--min-effect", a.min_effect,
                 "a percentage: smaller changes are neither FASTER nor SLOWER");
  app.add_option("--method", a.method, "auto, bootstrap, mwu, welch, student or interval")
      ->check(one_of({"auto", "bootstrap", "mwu", "welch", "student", "interval"}))
      ->capture_default_str();
  app.add_option("--pair-devices", a.device_pairs,
                 "A:B,..: the base's results of device A with the candidate's of B, each a name, "
                 "an ordinal of CUDA's, a UUID or its beginning, or cpu");
  app.add_option("--alpha", a.alpha, "upper bound for p")
      ->check(number_check(1e-9, false, 0.5, "a number from 1e-9 to 0.5"))
      ->capture_default_str();
  app.add_option("--fdr", a.fdr, "adjust p over the sweep: bh or none")
      ->check(one_of({"bh", "none"}))
      ->capture_default_str();
  app.add_option(
         "--fail-on", a.fail_on,
         "of regression, missing, invalid, inconclusive, unreliable, device-mismatch; or none")
      ->capture_default_str();
  app.add_flag("--ignore-device", a.ignore_device, "compare results of different devices");
  app.add_option("--format", a.format, "table, md, json, junit or github")
      ->check(one_of({"table", "md", "json", "junit", "github"}))
      ->capture_default_str();
  app.add_option("-o,--output", a.output, "write to FILE, or - for standard output");
  app.add_flag("--all", a.all, "also show cells that are the SAME");
  app.add_flag("--explain", a.explain, "the command that measures each cell shown");
  app.footer(compare_footer());
}

}  // namespace wide::bench
