// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The command line's grammar; the commands define its meaning.
#include "bench/cli/cli.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <ostream>

#include "bench/cli/cli_messages.hpp"
#include "bench/cli/cli_numbers.hpp"
#include "bench/cli/cli_options.hpp"
#include "bench/cli/commands.hpp"
#include "bench/cli/completion.hpp"
#include "bench/cli/help.hpp"
#include "bench/cli/idle_options.hpp"
#include "bench/command/options.hpp"
#include "bench/command/outputs.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/terminal.hpp"
#include "wide/error.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

void add_axes(CLI::App& app, Selection& s) {
  app.add_option("-a,--axis", s.axes, "NAME=SPEC, for any axis; NAME[pow2]=SPEC for powers of two")
      ->group("Cases");
  for (const auto& [name, summary] : axis_summaries()) {
    app.add_option("--" + name, s.axis_options[name], summary)->group("Axes");
  }
}

void add_model_file(CLI::App& app, Selection& s) {
  app.add_option("--extent", s.file.extents,
                 "NAME=NUMBER: a symbolic extent of the model's file, except the batch")
      ->group("Cases");
  app.add_option("--fixed-input", s.file.fixed_inputs,
                 "NAME=NUMBER: fills an input of the file with one number: attention_mask=1")
      ->group("Cases");
  app.add_option("--model-output", s.file.output, "the file's output to compute, if it has several")
      ->group("Cases");
}

void add_strategies(CLI::App& app, Selection& s) {
  app.add_option("--strategy", s.strategies, "strategies to run, all, auto or auto_unverified")
      ->group("Strategies");
  app.add_option("--only", s.only, "the same")->group("Strategies");
  app.add_option("--skip", s.skip, "strategies to leave out")->group("Strategies");
}

template <class Options>
void add_selection(CLI::App& app, Options& o) {
  Selection& s = o.selection;
  app.add_option("--op", s.ops, "primitives, or all")->group("Cases");
  app.add_option("--model", s.models,
                 "whole models: see `wbench list models`; or all; or a file's path")
      ->group("Cases");
  add_model_file(app, s);
  app.add_option("-p,--preset", s.preset, "quick, full or ci")
      ->group("Cases")
      ->capture_default_str();
  add_axes(app, s);
  app.add_option("--filter", s.filter, "regular expression over \"op axis=value ..\"")
      ->group("Cases");
  app.add_option("--where", s.where,
                 "a condition over axes, such as \"n*batch*d <= 1M and dtype == fp16\": + - * / % "
                 "== != < <= > >= and or not ( )")
      ->group("Cases");
  add_strategies(app, s);
  app.add_option("-d,--device", s.device,
                 "cpu, cuda or cuda:K; run, verify: also several, cuda:0,1, with a result each; "
                 "default: cuda if usable, else cpu");
  app.add_option("--seed", o.config.seed, "of the operands")->check(kSeed)->capture_default_str();
  app.add_flag("--dry-run", o.dry_run, "print the cases and stop");
}

/// Not for `profile`, whose arguments are the tool's.
void add_named_ops(CLI::App& app, Selection& s) {
  app.add_option("op", s.named_ops, "primitives, or all: the same as --op");
}

void add_baselines(CLI::App& app, RunOptions& o) {
  app.add_option("--baseline", o.selection.baselines,
                 "loop,streams,graph, all or none; default: all")
      ->group("Strategies");
}

template <class Options>
void add_sampling(CLI::App& app, Options& o) {
  const char* group = "Sampling";
  app.add_option(
         "--regime", o.selection.regimes,
         "cold,graph,stream,cpu on CUDA, cpu on the CPU, or all; default: all but CUDA's cpu")
      ->group(group);
  app.add_option("--rounds", o.config.rounds, "rounds in which every strategy is sampled")
      ->group(group)
      ->check(number_check(3, false, 10000, "an integer from 3 to 10000"))
      ->capture_default_str();
  app.add_option("--min-samples", o.config.min_samples, "per strategy")
      ->group(group)
      ->check(kCount)
      ->capture_default_str();
  app.add_option("--max-samples", o.config.max_samples, "per strategy")
      ->group(group)
      ->check(kCount)
      ->capture_default_str();
  app.add_option("--target-ci", o.target_ci, "stop when every interval's half-width is below")
      ->group(group)
      ->capture_default_str();
  app.add_option("--warmup-time", o.config.warmup_s, "seconds per case")
      ->group(group)
      ->check(kNotNegative)
      ->capture_default_str();
  app.add_option("--timeout", o.config.timeout_s, "seconds of sampling per case")
      ->group(group)
      ->check(kPositive)
      ->capture_default_str();
  app.add_option(
         "--budget", o.budget_s,
         "seconds for the whole sweep: fewer samples, never fewer cases; a warning says if it "
         "was exceeded; run: 60 for ci")
      ->group(group)
      ->check(kPositive);
  app.add_option("--order-seed", o.config.order_seed, "of the strategies' order")
      ->group(group)
      ->check(kSeed)
      ->capture_default_str();
}

void add_tune(CLI::App& app, TuneOptions& o) {
  app.add_option("--tuning,--write", o.tuning,
                 "the cache to add to, created if missing; default: store nothing");
  app.add_flag("--again", o.measures_again,
               "measure anew what that cache has from the same candidates and options");
  app.add_option("--apply", o.apply, "a cache that auto reads, for column vs auto");
  app.add_option("--space", o.space,
                 "what to search: STRATEGY, STRATEGY:POLICY or OP/STRATEGY:POLICY of `wbench list "
                 "policies`, ..; default: all")
      ->group("Strategies");
  app.add_option(
         "--search", o.search,
         "exhaustive: measure all in full; random: as many as --budget allows; halving: all "
         "briefly, then the better half longer, and so on. The best two are measured in full")
      ->check(one_of({"exhaustive", "random", "halving"}))
      ->capture_default_str();
  app.footer(tune_footer());
}

void add_trace(CLI::App& app, TraceOptions& o) {
  app.add_option("-m,--model", o.selection.models, "one of `wbench list models`, or a file's path")
      ->group("Cases");
  app.add_option("--onnx", o.onnx, "a model's file")->group("Cases");
  add_model_file(app, o.selection);
  app.add_option("--op", o.selection.ops, "a primitive: what one call of it launches")
      ->group("Cases");
  add_axes(app, o.selection);
  add_strategies(app, o.selection);
  app.add_option("--style", o.style, "of the graph: list, tree, table, dot or json")
      ->check(one_of({"list", "tree", "table", "dot", "json"}))
      ->capture_default_str();
  app.add_flag("--dot", o.is_dot, "the same as --style dot");
  app.add_option("--compile", o.preset, "default, fast, debug, safe; none: the graph as given")
      ->check(one_of({"default", "fast", "debug", "safe", "none"}))
      ->capture_default_str();
  app.add_option("--tuning", o.tuning, "a cache of `wbench tune` that steps read, as by auto");
  app.add_flag("--times", o.measures, "measure each step separately");
  app.add_option("-d,--device", o.selection.device, "cpu, cuda or cuda:K");
  app.add_option("-o,--output", o.file, "write to FILE");
  app.add_option("--json", o.json, "all of it as JSON, to FILE or - for standard output");
  app.footer(exit_codes());
}

/// After the one value of an option comes an argument, such as a primitive's name: a list
/// is given by repeating its option.
void take_one_value_each(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 1 && !option->get_positional())
      option->type_size(1)->allow_extra_args(false);
  }
}

/// Empty values are ambiguous; most often a script's variable is not set.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator is_something(
      [](std::string& text) {
        return text.empty() ? "\"\", expected a value, or the option left out" : std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(is_something);
  }
}

struct Program {
  CLI::App app{"wbench: N models as one, checked and measured", "wbench"};
  GlobalOptions global;
  RunOptions run, verify;
  InspectOptions inspect;
  TuneOptions tune;
  QuantizeOptions quantize;
  HistoryOptions history;
  CompareArguments compare;
  ReportArguments report;
  SuiteOptions suite;
  ProfileOptions profile;
  TraceOptions trace;
  OutputOptions show_output;
  std::vector<std::string> show_files;
  InfoOptions info;
  std::string list_what = "ops", list_ops, list_json;
  std::string shell, text_file = "-";  ///< of completion and man
  std::string helped;                  ///< of help
  CLI::App *run_command, *verify_command, *list_command, *info_command, *show_command,
      *tune_command, *quantize_command, *compare_command, *history_command, *report_command,
      *suite_command, *profile_command, *trace_command, *completion_command, *man_command,
      *help_command;
  CLI::App* inspect_command = nullptr;  ///< in builds with CUDA

  Program() {
    add_global_options();
    add_measuring();
    add_reading();
    add_others();
    if constexpr (has_simulation()) add_inspect();
    add_help();
    app.require_subcommand(0, 1);
    app.allow_extras();
    refuse_empty_values(app);
    for (CLI::App* command : app.get_subcommands({})) {
      command->allow_extras()->fallthrough();
      take_one_value_each(*command);
      refuse_empty_values(*command);
    }
  }

  void add_global_options() {
    app.formatter(help_formatter());  // before there are commands, which take it over
    app.set_version_flag("--version", std::string("wbench ") + version());
    app.add_option("--color", global.color, "auto, always or never")
        ->check(one_of({"auto", "always", "never"}));
    app.add_flag("-q,--quiet", global.quiet, "nothing on standard error but errors");
    app.add_flag(
        "-v,--verbose", global.verbose,
        "run, show: a line on standard error for every case and check, and tables of launches, "
        "kernels, energy, clocks and memory");
    app.add_flag("--no-gpu", global.no_gpu, "do not look for CUDA devices");
    if constexpr (has_simulation()) {
      app.add_flag("--sim", global.simulate,
                   "run the CUDA kernels on the simulated GPU: results and counters, no times");
    }
    app.fallthrough();
    app.footer(exit_codes());
  }

  /// Commands that run cases.
  void add_measuring() {
    run_command = app.add_subcommand("run", "check and measure strategies against baselines");
    add_selection(*run_command, run);
    add_named_ops(*run_command, run.selection);
    add_baselines(*run_command, run);
    add_sampling(*run_command, run);
    add_run(*run_command, run);
    add_checking(*run_command, run);
    add_output(*run_command, run.output);
    add_metrics(*run_command, run.output);
    if constexpr (has_simulation()) add_counters(*run_command, run.output);
    run_command->footer(run_footer());
    verify_command =
        app.add_subcommand("verify", "check strategies and baselines, measure nothing");
    verify_command->alias("test");
    add_selection(*verify_command, verify);
    add_named_ops(*verify_command, verify.selection);
    add_baselines(*verify_command, verify);
    add_verify(*verify_command, verify);
    add_checking(*verify_command, verify);
    add_output(*verify_command, verify.output);
    verify.command = "verify";
    verify.content = ReportContent::checks;
    tune_command = app.add_subcommand("tune", "find the fastest strategy and policy for auto");
    add_selection(*tune_command, tune);
    add_named_ops(*tune_command, tune.selection);
    add_sampling(*tune_command, tune);
    add_tune(*tune_command, tune);
    profile_command = app.add_subcommand("profile", "one case under nsys or ncu");
    add_selection(*profile_command, profile.run);
    add_baselines(*profile_command, profile.run);
    add_profile(*profile_command, profile);
    profile.run.selection.baselines = "none";
    trace_command =
        app.add_subcommand("trace", "a model's graph, and how it runs; or what one call launches");
    add_trace(*trace_command, trace);
    suite_command = app.add_subcommand("suite", "runs that belong together, from a file");
    add_suite(*suite_command, suite);
  }

  /// Commands that read results, or list what is available.
  void add_reading() {
    list_command = app.add_subcommand("list",
                                      "ops, models, strategies, policies, axes, presets, "
                                      "tolerances, dtypes, devices, metrics, suites; "
                                      "refused: unsupported features, with reasons");
    list_command->add_option("what", list_what, "what to list")->capture_default_str();
    list_command->add_option("--op", list_ops, "only of these primitives");
    list_command->add_option("--json", list_json, "write JSON to FILE, or - for standard output");
    info_command = app.add_subcommand("info", "build, machine, devices");
    add_info(*info_command, info);
    show_command = app.add_subcommand("show", "print saved results");
    show_command
        ->add_option("files", show_files,
                     "result files, - for standard input, or runs of the history: see `wbench "
                     "history --help`")
        ->required();
    add_store(*show_command, show_output.store);
    add_exports(*show_command, show_output);
    add_metrics(*show_command, show_output);
    add_counters(*show_command, show_output);
    show_command->add_option("-t,--top", show_output.top, "only the N largest speedups")
        ->check(kCount);
    show_command->add_flag("--explain", show_output.explain,
                           "why each strategy was chosen, and each row's command");
    compare_command = app.add_subcommand("compare", "whether results are slower than a base's");
    add_compare(*compare_command, compare);
    add_store(*compare_command, compare.store);
    report_command = app.add_subcommand("report", "results as a page for browsers");
    add_report(*report_command, report);
    add_store(*report_command, report.store);
    history_command = app.add_subcommand("history", "runs that were saved, and how they changed");
    add_history(*history_command, history);
  }

  void add_others() {
    quantize_command = app.add_subcommand("quantize", "errors of a member's weight in fewer bits");
    add_quantize(*quantize_command, quantize);
    completion_command = app.add_subcommand("completion", "a script that completes wbench");
    completion_command->add_option("shell", shell, "the shell to complete for: bash, zsh or fish")
        ->check(one_of({"bash", "zsh", "fish"}))
        ->required();
    man_command = app.add_subcommand("man", "the manual page, for man(1)");
    for (CLI::App* command : {completion_command, man_command})
      command->add_option("-o,--output", text_file, "write to FILE");
    help_command = app.add_subcommand("help", "how wbench, or one of its commands, is used");
  }

  /// Added after all other commands, because it lists them.
  void add_help() {
    help_command->add_option("command", helped, "a command; default: all")
        ->check(one_of(command_names(app)));
  }

  void add_inspect() {
    inspect_command = app.add_subcommand(
        "inspect", "what one call does: launches, kernels' resources, counters, code; no times");
    add_selection(*inspect_command, inspect.run);
    add_named_ops(*inspect_command, inspect.run.selection);
    add_baselines(*inspect_command, inspect.run);
    add_output(*inspect_command, inspect.run.output);
    add_counters(*inspect_command, inspect.run.output);
    inspect_command
        ->add_option("--what", inspect.what,
                     "counters, on the simulated GPU; launches, resources, occupancy, ptx or sass, "
                     "there where no GPU is; graph of a model")
        ->check(one_of({"counters", "launches", "resources", "occupancy", "graph", "ptx", "sass"}))
        ->capture_default_str();
    inspect_command->footer(inspect_footer());
    inspect.run.content = ReportContent::counters;
  }
};

/// Whether the command is to run on the simulated GPU.
bool needs_simulation(const Program& p, const CLI::App& command) {
  if (p.global.simulate) return true;
  const Selection& traced = p.trace.selection;
  if (&command == p.trace_command) {
    return !traced.ops.empty() && traced.models.empty() && p.trace.onnx.empty() &&
           launches_need_simulation(traced, p.global);
  }
  if (&command != p.inspect_command || p.inspect.what == "graph") return false;
  return p.inspect.what == "counters" ||
         launches_need_simulation(p.inspect.run.selection, p.global);
}

int dispatch(Program& p, std::ostream& out, std::ostream& err) {
  if (p.app.get_subcommands().empty()) {
    const auto extras = p.app.remaining();
    if (!extras.empty() && extras.front().starts_with("-")) {
      throw Error(ErrorCode::invalid_argument,
                  "\"" + extras.front() +
                      "\" is no option of the program, expected a command before it, such as run; "
                      "see wbench --help");
    }
    if (!extras.empty()) {
      std::vector<std::string> names;
      for (const CLI::App* known : p.app.get_subcommands({})) names.push_back(known->get_name());
      const std::vector<std::string_view> views(names.begin(), names.end());
      throw Error(ErrorCode::invalid_argument,
                  catalog::unknown_name_message("command", extras.front(), views));
    }
    out << p.app.help();
    return kUsage;
  }
  const CLI::App& command = *p.app.get_subcommands().front();
  require_no_extras(p.app, command);
  refuse_idle_options(command);
  if (&command == p.help_command) {
    out << help_of(p.app, p.helped);
    return kSuccess;
  }
  if (needs_simulation(p, command) && !is_simulated()) {
    // Only where nothing is counted or timed: stand-ins compute on the host, which elsewhere would
    // be taken for a vendor's work.
    using enum SimulatedVendors;
    restart_simulated(p.global.argv, &command == p.verify_command ? yes : no);
  }
  if (&command == p.list_command)
    return command_list(p.global, p.list_what, p.list_ops, p.list_json, out);
  if (&command == p.info_command) return command_info(p.global, p.info, out, err);
  if (&command == p.show_command) return command_show(p.global, p.show_files, p.show_output, out);
  if (&command == p.history_command) return command_history(p.global, p.history, out, err);
  if (&command == p.report_command) return command_report(p.report, out, err);
  if (&command == p.compare_command) return command_compare(p.global, p.compare, out, err);
  if (&command == p.completion_command || &command == p.man_command) {
    const bool is_page = &command == p.man_command;
    write_document(is_page ? man_page(p.app) : completion_script(p.app, p.shell), p.text_file, out);
    return kSuccess;
  }
  if (&command == p.suite_command) return command_suite(p.global, p.suite, out, err);
  if (&command == p.quantize_command) return command_quantize(p.global, p.quantize, out);
  Selection& selection = &command == p.run_command       ? p.run.selection
                         : &command == p.verify_command  ? p.verify.selection
                         : &command == p.tune_command    ? p.tune.selection
                         : &command == p.profile_command ? p.profile.run.selection
                         : &command == p.trace_command   ? p.trace.selection
                                                         : p.inspect.run.selection;
  selection.no_gpu = p.global.no_gpu;
  std::erase_if(selection.axis_options, [](const auto& axis) { return axis.second.empty(); });
  if (&command == p.trace_command) return command_trace(p.global, p.trace, out, err);
  selection.ops = with_named_ops(command, selection.ops, selection.named_ops);
  selection.ops = with_models(selection.ops, selection.models);
  load_model_files(selection.ops, selection.file);
  if (selection.ops.empty() && command.get_option("--op")->count() == 0) {
    err << "wbench: --op is missing: one or more of these, or all; or --model\n";
    (void)command_list(p.global, "ops", "", "", out);
    return kUsage;
  }
  if (&command == p.profile_command) return command_profile(p.global, p.profile, out, err);
  if (&command == p.tune_command) return command_tune(p.global, p.tune, out, err);
  if (&command == p.inspect_command) return command_inspect(p.global, p.inspect, out, err);
  p.run.gpu_options = given_gpu_options(command);
  return command_run(p.global, &command == p.run_command ? p.run : p.verify, out, err);
}

}  // namespace

int wbench_main(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  // A file that may not grow any more (ulimit -f) is then an error of its write, like a full disk,
  // and leaves nothing behind. A handler, unlike SIG_IGN, is not handed on to peers and profilers.
  std::signal(SIGXFSZ, [](int) {});
  try {
    Program program;
    program.global.argv.assign(argv, argv + argc);
    int code = kSuccess;
    try {
      // CLI11 2.1 takes char**, and does not write to it.
      program.app.parse(argc, const_cast<char**>(argv));
      code = dispatch(program, out, err);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) {
        err << "wbench: " << shown_message(parse_message(program.app, error)) << "\n";
        return kUsage;
      }
      program.app.exit(error, out, err);  // --help and --version
    }
    out.flush();
    if (out) return code;
    err << "wbench: cannot write to standard output\n";
    return is_cut_short(code) ? code : kRuntimeError;
  } catch (const Error& error) {
    err << "wbench: " << shown_message(error.what()) << "\n";
    return error.code() == ErrorCode::invalid_argument ? kUsage : kRuntimeError;
  } catch (const std::exception& error) {
    err << "wbench: " << shown_message(error.what()) << "\n";
    return kRuntimeError;
  }
}

}  // namespace wide::bench
