// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_options.hpp"

#include "bench/cli/cli_numbers.hpp"
#include "bench/cli/completion.hpp"
#include "bench/cli/help.hpp"
#include "bench/command/options.hpp"

namespace wide::bench {

void add_info(CLI::App& app, InfoOptions& o) {
  app.add_option("--json", o.json, "write JSON to FILE, or - for standard output");
  CLI::Option* calibrates =
      app.add_flag("--calibrate,--peaks", o.calibrates, "measure ceilings, launches and timers");
  CLI::Option* checks =
      app.add_flag("--self-check", o.checks_measuring,
                   "check that clocks, events, launches and cold calls are fit for measuring");
  CLI::Option* device =
      app.add_option("-d,--device", o.device,
                     "cpu, cuda or cuda:K; of --calibrate and --self-check; default: all");
  app.add_option("--op", o.ops,
                 "instead list strategies, policies, axes and presets of these primitives")
      ->excludes(calibrates)
      ->excludes(checks)
      ->excludes(device);
  app.footer(exit_codes());
}

void add_quantize(CLI::App& app, QuantizeOptions& o) {
  // Features of a weight that is quantised on the spot.
  const CLI::Validator size = number_check(1, false, 1e6, "an integer from 1 to 10^6");
  app.add_option("file", o.file, "elements of one weight [out, in], nothing else; default: random");
  app.add_option("--out", o.out_features, "out_features")->check(size)->capture_default_str();
  app.add_option("--in", o.in_features, "in_features")->check(size)->capture_default_str();
  app.add_option("--dtype", o.dtype, "of the weight: fp32, fp16 or bf16")->capture_default_str();
  app.add_option("--seed", o.seed, "of random weights, normally distributed")
      ->check(kSeed)
      ->capture_default_str();
  app.add_option("--format", o.formats, "formats, or all")->delimiter(',')->capture_default_str();
  app.add_option("--group", o.group_sizes, "inputs that share a scale: 64, 128 or both")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-o,--output,--json", o.json,
                 "write the report as JSON to FILE, or - for standard output");
  app.footer(quantize_footer());
}

void add_history(CLI::App& app, HistoryOptions& o) {
  app.add_option("what", o.what, "what to do")
      ->check(one_of({"list", "show", "add", "tag", "rm", "gc", "trend", "noise", "bisect-hint"}))
      ->capture_default_str();
  app.add_option("arguments", o.arguments, "runs; add: files; tag: a run and its tag");
  add_store(app, o.store);
  app.add_option("--op", o.op, "trend, noise, bisect-hint: of these primitives");
  app.add_option("-a,--axis", o.axes, "the same: NAME=VALUE,VALUE of cases");
  app.add_option("--filter", o.filter, "the same: regular expression over \"op axis=value ..\"");
  app.add_option("--strategy", o.strategy, "the same: of this strategy, or (baseline)");
  app.add_option("--keep", o.keep, "gc: number of newest runs to keep, besides all that have a tag")
      ->check(number_check(0, false, 1e9, "an integer from 0 to 10^9"));
  app.add_flag("--json", o.as_json, "list, trend, noise, bisect-hint: JSON");
  app.footer(history_footer());
}

}  // namespace wide::bench
