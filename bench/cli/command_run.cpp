// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `run` and `verify`: what is compared, how often it runs, the time limit.
#include <memory>
#include <ostream>

#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/repeated.hpp"
#include "bench/document/saved_workspace.hpp"
#include "bench/history/names.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/report.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// Refuses counters where nothing counts.
void require_counters(const RunOptions& options) {
  const std::string& list = options.output.counters;
  (void)parse_counters(list);
  if (list.empty() || (is_simulated() && options.selection.device != "cpu")) return;
  throw Error(ErrorCode::invalid_argument,
              "--counters " + list +
                  ": only the simulated GPU counts these: wbench --sim run .., or wbench inspect; "
                  "a GPU's own come by wbench profile --tool ncu");
}

}  // namespace

int command_run(const GlobalOptions& global, RunOptions options, std::ostream& out,
                std::ostream& err) {
  if (!options.isolated_case.empty()) {  // the parent handles the others
    options.repeat = 1;
    options.repeat_turn = -1;
    options.repeat_result.clear();
    options.compare.base.clear();
  }
  (void)parse_metrics(options.output.metrics);  // unknown columns are reported before anything runs
  (void)parse_saving_rule(options.saving);
  require_counters(options);
  const bool compares = !options.compare.base.empty() && !options.dry_run;
  // In the processes of --repeat nothing is compared; the first finds out whether there is anything
  // to compare, unless the base was standard input.
  const bool is_turn = options.repeat_turn >= 0;
  if (compares) require_compare_arguments(options.compare);
  if (compares && (!is_turn || (options.repeat_turn == 0 && options.compare.base != "-"))) {
    options.compare_base = std::make_shared<const std::vector<RunResult>>(
        load_named_results(options.compare.base, options.output.store));  // before this is last
  }
  std::vector<RunResult> runs;
  const double limit_s = options.time_left_s > 0 ? options.time_left_s : options.time_limit_s;
  if (limit_s > 0) set_time_limit(limit_s);
  const int code = run_repeatedly(global, options, runs, out, err);
  if (!compares || is_turn || runs.empty() || is_cut_short(code)) return code;
  // A document must be the only output on standard output: the table goes elsewhere.
  std::ostream nowhere(nullptr);
  std::ostream& table = !goes_to_stdout(options.output) ? out : global.quiet ? nowhere : err;
  table << "\n";
  return worse_code(
      code, compare_results(global, options.compare, *options.compare_base, runs, table, err));
}

}  // namespace wide::bench
