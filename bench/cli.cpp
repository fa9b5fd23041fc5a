// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The command line's grammar; what it means is in the commands.
#include "bench/cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ostream>

#include "bench/commands.hpp"
#include "bench/simulation.hpp"
#include "bench/summary.hpp"
#include "wide/error.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 a case failed or a file could not be written; 2 usage; 3 wrong or "
    "implausible\n"
    "results; 6 nothing ran or matched; 7 the device asked for is not usable; 130 interrupted, "
    "partial results\n"
    "written. Where several apply, the first of 2, 1, 7, 3, 6 wins.";

/// A number of the range, said in a sentence: CLI11's own spells out the largest double.
CLI::Validator number_check(double least, bool is_open, double most, const std::string& expected) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && end == text.data() + text.size();
        const bool is_in = (is_open ? value > least : value >= least) && value <= most;
        return is_number && is_in ? "" : "\"" + text + "\", expected " + expected;
      },
      "");
}

const CLI::Validator kPositive = number_check(0, true, 1e9, "a number above 0");
const CLI::Validator kNotNegative = number_check(0, false, 1e9, "a number, 0 or above");
/// JSON keeps integers up to here exact everywhere.
const CLI::Validator kSeed = number_check(0, false, 0x1p53, "an integer from 0 to 2^53");

std::string run_footer() {
  return std::string(
             "Axis values: 4,8,16 | 4:16:4 | 1:64:x2 | 2^5 | 8K; words for dtype and the like; see "
             "`wbench list axes`.\n\n"
             "Meaning of the columns:\n"
             "  time           median of one call of all N members; +- is the median absolute "
             "deviation\n"
             "  of floor       floor / time; floor = max(bytes / measured bandwidth, flops / "
             "measured rate) + measured\n"
             "                 empty launch; above 100 % where a cache, not memory, feeds the "
             "operands\n"
             "  vs loop, ..    speedup = exp(median over rounds of log(baseline / strategy)), with "
             "its 95 % bootstrap\n"
             "                 interval over rounds; baselines are N separate calls: loop (one "
             "stream), streams (up to\n"
             "                 8), graph (the loop captured); loop and streams pair with regime "
             "stream, graph with graph\n"
             "  err/tol        worst error / tolerance against the fp64 reference @ its member; 1 "
             "passes\n"
             "  n              samples; few_samples below 30\n"
             "After the sweep, per primitive, regime and baseline:\n") +
         summary_definitions() + "\n" + kExitCodes;
}

std::string tune_footer() {
  return std::string(
             "Every strategy that can run a case is checked and timed by every policy that it has; "
             "what is wrong is\n"
             "never kept. On CUDA graphs are timed, so that launches do not decide; --regime "
             "stream "
             "times them.\n\n"
             "Meaning of the columns:\n"
             "  fastest        strategy:policy with the smallest median\n"
             "  vs auto        what auto takes without a cache: its time / the fastest's\n"
             "  vs vendor      the vendor library's best: its time / the fastest's\n"
             "  of             candidates that ran and were right\n"
             "`wbench run --tuning FILE` and PlanOptions::tuning read what --tuning FILE "
             "keeps.\n\n") +
         kExitCodes;
}

std::string quantize_footer() {
  return std::string(
             "Meaning of the columns:\n"
             "  bits         of a weight, scales and padding included; bytes: of the member\n"
             "  relative     root of the squared errors' sum over that of the weights' squares\n"
             "  SNR          -20 log10 of that; inf: nothing is lost\n"
             "  rms, largest error of a weight\n"
             "  worst group  the one with the largest sum of squared errors\n"
             "nan: a weight is not finite.\n\n") +
         kExitCodes;
}

std::string inspect_footer() {
  return std::string(
             "Meaning of the columns, of one call of all N members:\n"
             "  instructions   executed by threads; fp32: those of them on the fp32 units\n"
             "  loads, stores  32-byte sectors requested of global memory / the least that the "
             "same bytes need\n"
             "  minimum        bytes of the operands, each once\n"
             "  bytes          requested / minimum, without rereads\n"
             "  rereads        bytes that a block requests after another block has / minimum: a "
             "cache serves them\n"
             "  conflicts      passes of shared memory lost to bank conflicts, of all\n"
             "  tensor         operations issued to tensor cores / useful ones\n") +
         kExitCodes;
}

/// Names of every axis of every primitive, with the first summary of each.
std::vector<std::pair<std::string, std::string>> all_axes() {
  std::vector<std::pair<std::string, std::string>> axes;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    for (const catalog::AxisInfo& axis : spec->axes) {
      const auto same = std::find_if(axes.begin(), axes.end(),
                                     [&](const auto& a) { return a.first == axis.name; });
      if (same == axes.end()) axes.emplace_back(axis.name, axis.summary);
    }
  }
  return axes;
}

template <class Options>
void add_selection(CLI::App& app, Options& o) {
  Selection& s = o.selection;
  app.add_option("--op", s.ops, "primitives, or all")->group("Cases");
  app.add_option("-p,--preset", s.preset, "quick, full or ci")
      ->group("Cases")
      ->capture_default_str();
  app.add_option("-a,--axis", s.axes, "NAME=SPEC, for any axis; NAME[pow2]=SPEC for powers of two")
      ->group("Cases");
  for (const auto& [name, summary] : all_axes()) {
    app.add_option("--" + name, s.axis_options[name], summary)->group("Axes");
  }
  app.add_option("--filter", s.filter, "regular expression over \"op axis=value ..\"")
      ->group("Cases");
  app.add_option("--strategy", s.strategies, "strategies to run, or auto")->group("Strategies");
  app.add_option("--only", s.only, "the same")->group("Strategies");
  app.add_option("--skip", s.skip, "strategies to leave out")->group("Strategies");
  app.add_option("-d,--device", s.device,
                 "cpu, cuda or cuda:K; default: cuda where usable, else cpu");
  app.add_option("--seed", o.config.seed, "of the operands")->check(kSeed)->capture_default_str();
  app.add_flag("--dry-run", o.dry_run, "print the cases and stop");
}

void add_baselines(CLI::App& app, RunOptions& o) {
  app.add_option("--baseline", o.selection.baselines, "loop,streams,graph or none; default: all")
      ->group("Strategies");
}

void add_output(CLI::App& app, OutputOptions& o) {
  app.add_option("--json", o.json, "write the result as JSON to FILE, or - for standard output")
      ->group("Output");
  app.add_option("-o,--output", o.json, "the same as --json FILE")->group("Output");
  app.add_option("--csv", o.csv, "write a CSV table")->group("Output");
  app.add_option("--md", o.md, "write a Markdown table")->group("Output");
  app.add_flag("-s,--save", o.save, "save as results/<time>-<op>.json")->group("Output");
  app.add_option("-t,--top", o.top, "only the N largest speedups")
      ->group("Output")
      ->check(kPositive);
  app.add_flag("--explain", o.explain, "why each strategy was taken, and each case's command")
      ->group("Output");
}

template <class Options>
void add_sampling(CLI::App& app, Options& o) {
  const char* group = "Sampling";
  app.add_option("--regime", o.selection.regimes,
                 "stream,graph on CUDA, cpu on the CPU; default: all of the device")
      ->group(group);
  app.add_option("--rounds", o.config.rounds, "turns of every strategy")
      ->group(group)
      ->check(number_check(3, false, 10000, "an integer from 3 to 10000"))
      ->capture_default_str();
  app.add_option("--min-samples", o.config.min_samples, "per strategy")
      ->group(group)
      ->check(kPositive)
      ->capture_default_str();
  app.add_option("--max-samples", o.config.max_samples, "per strategy")
      ->group(group)
      ->check(kPositive)
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
  app.add_option("--budget", o.budget_s,
                 "seconds for the whole sweep: fewer samples, never fewer cases; run: 60 for ci")
      ->group(group)
      ->check(kPositive);
  app.add_option("--order-seed", o.config.order_seed, "of the strategies' order")
      ->group(group)
      ->check(kSeed)
      ->capture_default_str();
}

/// What `run` alone has: `tune` recommends nothing that was not checked.
void add_run(CLI::App& app, RunOptions& o) {
  app.add_option("--verify", o.config.verify, "both, before or off")
      ->group("Sampling")
      ->check(CLI::IsMember({"both", "before", "off"}))
      ->capture_default_str();
  app.add_option("--tuning", o.tuning,
                 "a tuning cache: auto reads it, and is run besides the others")
      ->group("Strategies");
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

/// CLI11 knows only that something is left over; this says what was probably meant.
void require_no_extras(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> extras = command.remaining();
  for (const std::string& extra : app.remaining()) extras.push_back(extra);
  if (extras.empty()) return;
  const auto option =
      std::find_if(extras.begin(), extras.end(), [](const auto& e) { return e.starts_with("-"); });
  const std::string& extra = option != extras.end() ? *option : extras.front();
  std::vector<std::string> names;
  for (const CLI::App* owner : {&command, &app}) {
    for (const CLI::Option* known : owner->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto nearest = catalog::nearest_names(extra.substr(0, extra.find('=')), views);
  std::string message = "unknown argument \"" + extra + "\"";
  for (size_t i = 0; i < nearest.size(); ++i)
    message += (i == 0 ? ", did you mean " : ", ") + nearest[i];
  throw Error(ErrorCode::invalid_argument,
              message + (nearest.empty() ? "; see wbench " + command.get_name() + " --help" : "?"));
}

struct Program {
  CLI::App app{"wbench: N models as one, checked and measured", "wbench"};
  GlobalOptions global;
  RunOptions run, verify, inspect;
  TuneOptions tune;
  QuantizeOptions quantize;
  OutputOptions show_output;
  std::vector<std::string> show_files;
  std::string list_what = "ops", list_ops, list_json, info_json;
  std::string inspect_what = "counters";
  CLI::App *run_command, *verify_command, *list_command, *info_command, *show_command,
      *tune_command, *quantize_command;
  CLI::App* inspect_command = nullptr;  ///< in builds with CUDA

  Program() {
    app.set_version_flag("--version", std::string("wbench ") + version());
    app.add_option("--color", global.color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    app.add_flag("-q,--quiet", global.quiet, "nothing on standard error but errors");
    app.add_flag("-v,--verbose", global.verbose, "a line on standard error for every case");
    app.add_flag("--no-gpu", global.no_gpu, "do not look for CUDA devices");
    if constexpr (has_simulation()) {
      app.add_flag("--sim", global.simulate,
                   "run the CUDA kernels on the simulated GPU: results and counters, no times");
    }
    app.fallthrough();
    app.footer(kExitCodes);
    run_command = app.add_subcommand("run", "check and measure strategies against baselines");
    verify_command =
        app.add_subcommand("verify", "check strategies and baselines, measure nothing");
    list_command = app.add_subcommand(
        "list", "ops, strategies, policies, axes, presets, dtypes, devices, metrics");
    info_command = app.add_subcommand("info", "build, machine, devices");
    show_command = app.add_subcommand("show", "print saved results");
    tune_command = app.add_subcommand("tune", "find the fastest strategy and policy for auto");
    quantize_command = app.add_subcommand("quantize", "what fewer bits do to a member's weight");
    add_quantize(*quantize_command, quantize);
    add_selection(*run_command, run);
    add_baselines(*run_command, run);
    add_sampling(*run_command, run);
    add_run(*run_command, run);
    add_output(*run_command, run.output);
    run_command->footer(run_footer());
    add_selection(*verify_command, verify);
    add_baselines(*verify_command, verify);
    add_output(*verify_command, verify.output);
    verify.content = ReportContent::checks;
    add_selection(*tune_command, tune);
    add_sampling(*tune_command, tune);
    tune_command->add_option(
        "--tuning", tune.tuning,
        "the cache to add to, made where there is none; default: keep nothing");
    tune_command->footer(tune_footer());
    if constexpr (has_simulation()) add_inspect();
    list_command->add_option("what", list_what, "what to list")->capture_default_str();
    list_command->add_option("--op", list_ops, "of these primitives");
    list_command->add_option("--json", list_json, "- for JSON on standard output")
        ->check(CLI::IsMember({"-"}));
    info_command->add_option("--json", info_json, "- for JSON on standard output")
        ->check(CLI::IsMember({"-"}));
    show_command->add_option("files", show_files, "result files, - for standard input")->required();
    show_command->add_option("-t,--top", show_output.top, "only the N largest speedups")
        ->check(kPositive);
    show_command->add_flag("--explain", show_output.explain, "why each strategy was taken");
    app.require_subcommand(0, 1);
    app.allow_extras();
    for (CLI::App* command : app.get_subcommands({})) command->allow_extras()->fallthrough();
  }

  void add_inspect() {
    inspect_command = app.add_subcommand("inspect", "what the kernels do, on the simulated GPU");
    add_selection(*inspect_command, inspect);
    add_baselines(*inspect_command, inspect);
    add_output(*inspect_command, inspect.output);
    inspect_command->add_option("--what", inspect_what, "counters")
        ->check(CLI::IsMember({"counters"}))
        ->capture_default_str();
    inspect_command->footer(inspect_footer());
    inspect.content = ReportContent::counters;
  }
};

int dispatch(Program& p, std::ostream& out, std::ostream& err) {
  if (p.app.get_subcommands().empty()) {
    const auto extras = p.app.remaining();
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
  const bool needs_simulation = p.global.simulate || &command == p.inspect_command;
  if (needs_simulation && !is_simulated()) restart_simulated(p.global.argv);
  if (&command == p.list_command)
    return command_list(p.global, p.list_what, p.list_ops, !p.list_json.empty(), out);
  if (&command == p.info_command) return command_info(p.global, !p.info_json.empty(), out);
  if (&command == p.show_command) return command_show(p.global, p.show_files, p.show_output, out);
  if (&command == p.quantize_command) return command_quantize(p.global, p.quantize, out);
  Selection& selection = &command == p.run_command      ? p.run.selection
                         : &command == p.verify_command ? p.verify.selection
                         : &command == p.tune_command   ? p.tune.selection
                                                        : p.inspect.selection;
  selection.no_gpu = p.global.no_gpu;
  auto& axes = selection.axis_options;
  for (auto it = axes.begin(); it != axes.end();) {
    it = command.get_option("--" + it->first)->count() == 0 ? axes.erase(it) : std::next(it);
  }
  if (command.get_option("--op")->count() == 0) {
    err << "wbench: --op is missing: one or more of these, or all\n";
    (void)command_list(p.global, "ops", "", false, out);
    return kUsage;
  }
  if (&command == p.tune_command) return command_tune(p.global, p.tune, out, err);
  return command_run(p.global,
                     &command == p.run_command      ? p.run
                     : &command == p.verify_command ? p.verify
                                                    : p.inspect,
                     out, err);
}

}  // namespace

int wbench_main(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  try {
    Program program;
    program.global.argv.assign(argv, argv + argc);
    int code = kSuccess;
    try {
      // CLI11 2.1 takes char**, and does not write to it.
      program.app.parse(argc, const_cast<char**>(argv));
      code = dispatch(program, out, err);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) throw;
      program.app.exit(error, out, err);  // --help and --version
    }
    out.flush();
    if (out) return code;
    err << "wbench: cannot write to standard output\n";
    return code == kInterrupted ? kInterrupted : kRuntimeError;
  } catch (const CLI::ParseError& error) {
    err << "wbench: " << error.what() << "\n";
    return kUsage;
  } catch (const Error& error) {
    err << "wbench: " << error.what() << "\n";
    return error.code() == ErrorCode::invalid_argument ? kUsage : kRuntimeError;
  } catch (const std::exception& error) {
    err << "wbench: " << error.what() << "\n";
    return kRuntimeError;
  }
}

}  // namespace wide::bench
