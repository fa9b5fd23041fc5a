// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Select, run, write, judge.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>

#include "bench/cases/value_spec.hpp"
#include "bench/command/comparable.hpp"
#include "bench/command/isolated.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/repeated.hpp"
#include "bench/command/reproduce.hpp"
#include "bench/command/run_selection.hpp"
#include "bench/command/running.hpp"
#include "bench/document/doubts.hpp"
#include "bench/document/events.hpp"
#include "bench/history/names.hpp"
#include "bench/machine/environment.hpp"
#include "bench/machine/host_load.hpp"
#include "bench/machine/machine_checks.hpp"
#include "bench/nvml/clock_lock.hpp"
#include "bench/peer/peer.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/report.hpp"
#include "bench/report/terminal.hpp"
#include "bench/run/choice.hpp"
#include "bench/run/sweep.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/file.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

void print_cases(const RunPlan& plan, const RunResult& result, const std::string& suffix,
                 std::ostream& out) {
  for (const auto& [spec, cases] : plan.work) {
    for (const catalog::Case& point : cases)
      out << spec->name << " " << point.to_string() << "\n  "
          << reproduce_command(point, plan.command) << suffix << "\n";
  }
  out << counted(plan.num_cases(), "case") << "\n";
  for (const auto& [reason, number] : result.impossible_reasons)
    out << "impossible: " << counted(number, "point") << ": " << reason << "\n";
}

/// Parses "NAME=VALUE" texts, each name once.
std::vector<std::pair<std::string, std::string>> context_of(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> context;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const bool is_new = std::none_of(context.begin(), context.end(),
                                     [&](const auto& known) { return known.first == name; });
    if (equals == std::string::npos || equals == 0 || !is_new) {
      throw Error(ErrorCode::invalid_argument,
                  "--context: \"" + text + "\", expected NAME=VALUE, each name once");
    }
    context.emplace_back(name, text.substr(equals + 1));
  }
  return context;
}

/// A strategy that an op lacks is dropped from its results if the op has another one of the
/// selection: `--op all --skip sequential` names the strategies of all ops.
void drop_foreign_strategies(const RunPlan& plan, CaseResult& c) {
  const auto& known = catalog::find_primitive(c.point.op()).strategies;
  const auto is_foreign = [&](const RunnerResult& r) {
    const std::string name = plan_options(r.name).strategy;
    return r.status == Status::skipped && !is_automatic(name) &&
           std::none_of(known.begin(), known.end(),
                        [&](const auto& info) { return info.name == name; });
  };
  if (plan.work.size() > 1 && !std::all_of(c.strategies.begin(), c.strategies.end(), is_foreign))
    std::erase_if(c.strategies, is_foreign);
}

/// The simulated GPU has no times: shows its counters instead, for the strategies alone unless
/// baselines are requested.
void prefer_counters(RunOptions& options, std::ostream& notes) {
  if (options.content == ReportContent::times) {
    notes << "wbench: the simulated GPU has no times; counters instead\n";
    options.content = ReportContent::counters;
  }
  if (options.content == ReportContent::counters && options.selection.baselines.empty())
    options.selection.baselines = "none";
}

/// Without a cold cache there is no regime cold.
void drop_cold(RunConfig& config) {
  if (config.cache != Cache::warm) return;
  std::erase(config.regimes, Regime::cold);
  if (config.regimes.empty())
    throw Error(ErrorCode::invalid_argument, "--cache warm leaves nothing of --regime cold");
}

/// A case's own process writes its result for its parent and prints nothing.
void become_child(RunOptions& options) {
  options.config.isolate = false;
  options.lock_clocks.clear();  // the parent holds the lock
  options.output = {};
  options.output.json = {options.isolated_result};
}

/// Locks the requested clocks and records that in the result; if it fails, reports it: false.
bool lock_clocks(const std::string& asked, const Context& context, std::optional<ClockLock>& lock,
                 RunResult& result, std::ostream& err) {
  if (asked.empty()) return true;
  const bool has_clocks = context.device().type == DeviceType::cuda && !is_simulated();
  try {
    if (!has_clocks) {
      throw Error(ErrorCode::unsupported, "--lock-clocks " + asked + ": device " +
                                              to_string(context.device()) +
                                              " has no clocks to lock, expected a GPU");
    }
    lock.emplace(pci_bus_id(context), asked);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw;
    err << "wbench: " << error.what() << "\n";
    return false;
  }
  result.locked_clocks = lock->locked();
  return true;
}

/// Starts the peers of --peer; if one is not a peer, reports it and returns false. A case's own
/// process starts its own.
bool start_peers(const RunOptions& options, RunPlan& plan,
                 std::vector<std::unique_ptr<Peer>>& peers, std::ostream& err) {
  if (is_simulated() && !options.peers.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--peer: the simulated GPU is this program's own, and has no times");
  }
  if (plan.config.isolate) return true;
  const DeviceInfo& device = plan.context.info();
  for (const std::string& command : options.peers) {
    try {
      peers.push_back(std::make_unique<Peer>(command, device.device, cpu_threads_beside(device)));
    } catch (const Error& error) {
      err << "wbench: --peer: " << error.what() << "\n";
      return false;
    }
    const auto is_same = [&](const Peer* other) { return other->name() == peers.back()->name(); };
    if (std::any_of(plan.peers.begin(), plan.peers.end(), is_same)) {
      err << "wbench: --peer: two are called " << peers.back()->name() << "\n";
      return false;
    }
    plan.peers.push_back(peers.back().get());
  }
  return true;
}

Cache cache_of(const std::string& text) {
  for (const Cache cache : kCaches) {
    if (to_string(cache) == text) return cache;
  }
  throw Error(ErrorCode::invalid_argument,
              "--cache is " + text + ", expected flush, rotate or warm");
}

/// Parses the options that are texts. Throws invalid_argument for invalid ones.
RunConfig config_of(const RunOptions& options) {
  RunConfig config = options.config;
  if (config.verify == "only") config.verify = RunConfig().verify;
  config.target_ci_pct = parse_percent("--target-ci", options.target_ci);
  config.max_noise_pct = parse_percent("--max-noise", options.max_noise);
  config.init = init_of(options.init);
  config.cache = cache_of(options.cache);
  config.clock_tol_pct = parse_percent("--warmup-clock-tol", options.clock_tol);
  config.throttle_pct = parse_percent("--throttle-threshold", options.throttle_threshold);
  if (!options.lock_clocks.empty()) (void)parse_lock_clocks(options.lock_clocks);
  return config;
}

/// The exit code of --strict, and a report of the cases that cause it.
int strict_exit_code(const RunResult& result, std::ostream& err) {
  const auto& cases = result.cases;
  const auto doubtful =
      std::count_if(cases.begin(), cases.end(), [](const CaseResult& c) { return is_doubtful(c); });
  const auto mistrusted = std::count_if(cases.begin(), cases.end(),
                                        [](const CaseResult& c) { return is_mistrusted(c); });
  if (doubtful > 0) {
    err << fmt::format("wbench: unreliable: {} of {}; -v names what speaks against them\n",
                       doubtful, counted(cases.size(), "case"));
  }
  if (mistrusted > 0) {
    err << fmt::format(
        "wbench: mistrusted: {} of {}: most of what they were checked "
        "against is 0\n",
        mistrusted, counted(cases.size(), "case"));
  }
  return doubtful + mistrusted > 0 ? kInconclusive : kSuccess;
}

/// Reports options that change nothing on the CPU, once for all processes of a run.
void report_gpu_options(const GlobalOptions& global, const RunOptions& options,
                        const Context& context, std::ostream& err) {
  const bool is_first = options.isolated_case.empty() && options.repeat_turn <= 0;
  if (options.gpu_options.empty() || context.device().type != DeviceType::cpu || !is_first ||
      global.quiet)
    return;
  err << fmt::format("wbench: {} {} no effect here: the device is cpu, expected a GPU\n",
                     fmt::join(options.gpu_options, ", "),
                     options.gpu_options.size() == 1 ? "has" : "have");
}

/// Applies --cases and reports it, so that "passed" is not taken for all cases.
void take_sample(RunPlan& plan, int64_t count, std::ostream& notes) {
  const int64_t total = plan.num_cases();
  sample_cases(plan, count, plan.config.seed);
  notes << fmt::format("wbench: --cases {}: {} of {}, drawn by --seed {}\n", count,
                       plan.num_cases(), counted(total, "case"), plan.config.seed);
}

/// Reports the case at which --exit-on-error stopped.
void report_stop(const RunPlan& plan, const RunResult& result, std::ostream& err) {
  if (!plan.exits_on_error || result.cases.empty() || !is_error(result.cases.back())) return;
  const CaseResult& last = result.cases.back();
  err << fmt::format("wbench: --exit-on-error: {} of {} run; {} {} is {}: {}\n",
                     result.cases.size(), counted(plan.num_cases(), "case"), last.point.op(),
                     last.point.to_string(), to_string(last.status), last.reason);
}

/// ": " and the reason why the first case has not run, on behalf of the others.
std::string first_reason(const RunResult& result) {
  if (result.cases.empty() || result.cases.front().reason.empty()) return "";
  const size_t count = result.cases.size();
  return ": " + result.cases.front().reason +
         (count == 1 ? "" : fmt::format(" (the first of {} cases)", count));
}

/// Makes a plan of the selection's cases from the options; if there are none, `nothing` says why.
RunPlan plan_of(const RunOptions& options, const RunConfig& config, const Context& context,
                RunResult& result, std::string& nothing, std::ostream& notes) {
  const Selection& selection = options.selection;
  RunPlan plan(context);
  plan.command = options.command;
  plan.config = config;
  plan.config.preset = selection.preset;
  plan.verify_only = options.content != ReportContent::times;
  plan.exits_on_error = options.exits_on_error;
  plan.saving = parse_saving_rule(options.saving);
  plan.config.is_adversarial = options.is_adversarial;
  plan.compares_all = options.compares_all;
  if (options.is_profiled) plan.profiled_calls = options.profiled_calls;
  plan.profiles_graph = selection.regimes == "graph";
  plan.profiles_endlessly = options.is_endless;
  plan.calibration = options.calibration;
  if (options.budget_s >= 0) plan.config.budget_s = options.budget_s;
  if (options.budget_s < 0 && selection.preset == "ci") plan.config.budget_s = 60;
  nothing = select_work(selection, plan, result);
  if (nothing.empty()) nothing = foreign_strategies_reason(plan);
  drop_cold(plan.config);
  if (options.sampled_cases > 0) take_sample(plan, options.sampled_cases, notes);
  if (!options.isolated_case.empty())
    take_job(plan, options.isolated_case, options.isolated_result);
  plan.reproduce_suffix = reproduce_suffix(options, plan.context.device());
  return plan;
}

/// Each case completes its command, and is written to `events`, its times as soon as they are
/// known.
void record_cases(RunPlan& plan, bool is_child, EventLog& events) {
  plan.on_start = [&events](const RunResult& begun) { (void)events.start(begun); };
  plan.on_case = [&plan, &events, is_child](const RunResult& so_far, CaseResult& finished) {
    drop_foreign_strategies(plan, finished);
    if (!is_child) finished.reproduce += plan.reproduce_suffix;
    events.add(so_far);
  };
  if (!events.is_open()) return;
  plan.on_timed = [&events](const CaseResult& running, const RunnerResult& timed) {
    events.add_timed(running, timed);
  };
}

/// What runs beside a sweep.
struct Beside {
  std::optional<HostLoad> load;  ///< before the peers; none where no time depends on it
  std::vector<std::unique_ptr<Peer>> peers;
};

/// Ends the peers, so that what they used is known and not taken for others'; says what others did.
void judge_load(Beside& beside, RunPlan& plan, RunResult& result) {
  plan.peers.clear();
  beside.peers.clear();
  const std::optional<HostLoad> after = beside.load ? host_load() : std::nullopt;
  if (!after) return;
  for (EnvironmentCheck& check : load_checks(*beside.load, *after))
    result.environment_checks.push_back(std::move(check));
}

/// Runs the plan; returns the exit code, explained on `err`.
int run_planned(const GlobalOptions& global, const RunOptions& options, RunPlan& plan,
                Beside& beside, RunResult& result, std::ostream& err) {
  const bool is_child = !options.isolated_case.empty();
  if (plan.config.init.dist == "zeros" && !global.quiet && !is_child) {
    err << "wbench: --init zeros: zeros cost less power, so clocks stay higher: such times are "
           "those of no real operands\n";
  }
  set_progress(global, err, plan);
  if (plan.config.isolate) {
    plan.isolating_command = own_command(global, options);
    plan.isolating_command.emplace_back("-q");
  }
  const bool has_run = run_guarded(plan, result, err);
  judge_load(beside, plan, result);
  for (const auto& find : {budget_check, floors_check}) {
    if (auto check = is_child ? std::nullopt : find(result))  // a child knows only its share
      result.environment_checks.push_back(std::move(*check));
  }
  for (const EnvironmentCheck& check : result.environment_checks) {
    // A table says so at its foot.
    if (!global.quiet && goes_to_stdout(options.output)) err << "wbench: " << check.text << "\n";
  }
  report_stop(plan, result, err);
  const int code = has_run ? exit_code_of(result, is_interrupted()) : kRuntimeError;
  if (code == kNothingRan)
    err << "wbench: nothing ran: no strategy of the selection can run here" << first_reason(result)
        << "\n";
  return code == kSuccess && options.is_strict && !is_child ? strict_exit_code(result, err) : code;
}

/// Writes the requested files, and the table; returns the exit code, given `result`'s so far.
int deliver(const GlobalOptions& global, const RunOptions& options, const std::string& saved,
            EventLog& events, const RunResult& result, std::ostream& out, std::ostream& err) {
  const OutputOptions& o = options.output;
  events.finish(result);
  bool is_written = events.trouble().empty();
  if (!is_written) err << "wbench: " << events.trouble() << "\n";
  is_written = write_outputs(result, o, saved, out, err) && is_written;
  const int code = is_written || is_cut_short(result.exit_code) ? result.exit_code : kRuntimeError;
  if (!goes_to_stdout(o)) {
    out << report_text(
        result, {output_width(), wants_color(global.color), o.top, o.explain, options.content,
                 global.verbose, parse_metrics(o.metrics), parse_counters(o.counters)});
  }
  if (!saved.empty() && !global.quiet && code != kRuntimeError) err << "saved " << saved << "\n";
  return code;
}

}  // namespace

int run_selection(const GlobalOptions& global, RunOptions options, RunResult& result,
                  std::ostream& out, std::ostream& err) {
  std::ostream nowhere(nullptr);
  std::ostream& notes = global.quiet ? nowhere : err;
  if (options.config.verify == "only" || options.is_profiled)
    options.content = ReportContent::checks;
  if (is_simulated() && options.selection.device != "cpu") prefer_counters(options, notes);
  if (!options.isolated_case.empty()) become_child(options);
  (void)goes_to_stdout(options.output);  // contradictions are reported before anything runs
  if (!options.dry_run) require_outputs(options);
  if (!options.output.tag.empty()) require_tag(options.output.tag);
  const RunConfig config = config_of(options);
  (void)select_ops(options.selection.ops);  // a misspelt op is reported before a missing device
  const std::optional<Context> context = make_context(options.selection, err);
  if (!context) return kEnvironment;
  report_gpu_options(global, options, *context, err);
  result.argv = global.argv;
  // The words that a process of --repeat gets besides the user's follow those.
  result.argv.erase(std::find(result.argv.begin(), result.argv.end(), kRepeatTurn),
                    result.argv.end());
  result.note = options.output.note;
  result.context = context_of(options.output.context);
  if (!options.output.tag.empty()) result.tags = {options.output.tag};
  result.parent_suite = options.parent_suite;
  std::string nothing;
  RunPlan plan = plan_of(options, config, *context, result, nothing, notes);
  std::optional<TuningCache> tuning;
  if (!options.tuning.empty()) tuning = TuningCache::load(options.tuning);
  if (tuning) plan.tuning = &*tuning;
  if (options.dry_run) print_cases(plan, result, plan.reproduce_suffix, out);
  if (!nothing.empty()) {
    report_nothing(nothing, result, err);
    return kNothingRan;
  }
  if (options.dry_run) return kSuccess;
  if (options.compare_base != nullptr) {
    if (const std::string reason = other_device_reason(
            run_device(plan.context), options.is_one_of_several_devices, *options.compare_base);
        !reason.empty()) {
      err << "wbench: --compare " << options.compare.base << ": " << reason
          << "; wbench compare --ignore-device compares saved results all the same\n";
      return kEnvironment;
    }
    if (const std::string reason = incomparable_reason(plan, *options.compare_base);
        !reason.empty()) {
      err << "wbench: --compare " << options.compare.base << ": " << reason << "\n";
      return kNothingRan;
    }
  }
  std::optional<ClockLock> clocks;
  if (!lock_clocks(options.lock_clocks, plan.context, clocks, result, err)) return kEnvironment;
  const bool is_child = !options.isolated_case.empty();
  Beside beside;
  if (context->device().type == DeviceType::cpu && !plan.verify_only && !is_child)
    beside.load = host_load();
  if (!start_peers(options, plan, beside.peers, err)) return kEnvironment;
  result.config = plan.config;
  result.devices = {device_of(plan.context)};
  describe_environment(result);
  // A case's own process shares the device with its parent.
  if (!is_child) result.environment_checks = machine_checks(result);
  const std::string saved = saved_path(options.output, options.selection, result.id);
  if (!saved.empty()) require_saving(saved, store_or_default(options.output.store));
  EventLog events(options.output.events);
  record_cases(plan, is_child, events);
  result.exit_code = run_planned(global, options, plan, beside, result, err);
  clocks.reset();
  return deliver(global, options, saved, events, result, out, err);
}

}  // namespace wide::bench
