// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `tune`: measures every strategy with every policy, as `run` does, or those that a search picks,
// and stores the fastest, if it beats the choice of "auto", in a file that plans with strategy
// "auto" read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ostream>
#include <utility>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/running.hpp"
#include "bench/machine/machine_checks.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/simulation.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/tune/tune.hpp"
#include "bench/tune/tune_cases.hpp"
#include "bench/tune/tune_model.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Specs = std::vector<const catalog::PrimitiveSpec*>;

bool is_model(const catalog::PrimitiveSpec& spec) {
  return !spec.tuning_key;
}

/// What strategies may be of: the primitives, and with a model all, as it may consist of any.
Specs primitives_of(const Specs& specs) {
  const auto all = catalog::primitives();
  const bool has_model =
      std::any_of(specs.begin(), specs.end(), [](const auto* spec) { return is_model(*spec); });
  return has_model ? Specs(all.begin(), all.end()) : specs;
}

/// Loads the file, if it exists. An invalid file is an error before anything is
/// measured, and is not overwritten.
TuningCache cache_at(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  return TuningCache::load(path);
}

using Cells = std::vector<std::string>;

Cells cells_of(const std::string& name, const TunedCase& tuned) {
  const auto text = [](const std::optional<Timed>& timed) {
    return timed ? fmt::format("{} {}", timed->name, format_time(timed->time_ns))
                 : std::string("-");
  };
  const auto gain = [&](const std::optional<Timed>& timed) {
    if (!timed) return std::string("-");
    return fmt::format("{:.2f}x {}", timed->time_ns / tuned.winner.time_ns, timed->name);
  };
  const Speedup& s = tuned.vs_auto;
  const bool has_interval = tuned.automatic && s.speedup_ratio && s.ci_lo && s.ci_hi;
  const std::string vs_auto = has_interval
                                  ? fmt::format("{:.2f}x [{:.2f}, {:.2f}] {}", *s.speedup_ratio,
                                                *s.ci_lo, *s.ci_hi, tuned.automatic->name)
                                  : gain(tuned.automatic);
  return {name,
          tuned.winner.name,
          format_time(tuned.winner.time_ns),
          text(tuned.runner_up),
          vs_auto,
          kept_text(tuned),
          gain(tuned.vendor),
          std::to_string(tuned.num_candidates)};
}

/// Selects the op's strategies in --space, instead of --strategy; false if there are none.
bool narrow(Selection& selection, const std::string& space, const catalog::PrimitiveSpec& spec,
            const Specs& ops) {
  if (space.empty()) return true;
  selection.strategies = fmt::format("{}", fmt::join(space_of(space, spec, ops), ","));
  return !selection.strategies.empty();
}

/// Leaves out the cases that need not be measured again, and says so; returns their number.
int64_t drop_known(const TuneRequest& request, const catalog::PrimitiveSpec& spec,
                   const std::string& asked, RunPlan& plan) {
  std::vector<catalog::Case>& cases = plan.work.front().second;
  const size_t all = cases.size();
  const auto known = static_cast<int64_t>(std::erase_if(cases, [&](const catalog::Case& point) {
    return is_known(request, spec.tuning_key(point), asked);
  }));
  if (known > 0 && !request.global.quiet) {
    request.err << "wbench: " << spec.name << ": " << request.options.tuning << " has " << known
                << " of " << counted(all, "case")
                << " by the same options; --again measures anew\n";
  }
  return known;
}

/// `budget_s` is the op's share; 0: none.
TunedOp tune_op(const TuneRequest& request, const catalog::PrimitiveSpec& spec, double budget_s) {
  const TuneOptions& options = request.options;
  Selection selection = options.selection;
  selection.ops = spec.name;
  selection.baselines = "none";
  const DeviceType device = request.context.device().type;
  if (selection.regimes.empty() && device == DeviceType::cuda) selection.regimes = "graph";
  RunPlan plan = tuning_plan(request);
  TunedOp tuned;
  if (!narrow(selection, options.space, spec, request.ops)) {
    tuned.nothing = "--space has nothing of " + std::string(spec.name);
    return tuned;
  }
  tuned.nothing = select_work(selection, plan, tuned.result);
  plan.strategies = tune_candidates(spec, device, plan.strategies);
  if (tuned.nothing.empty() && plan.strategies.empty()) tuned.nothing = "no strategy is left";
  if (!tuned.nothing.empty()) return tuned;
  const std::string asked = request_hash(plan, options);
  tuned.num_known = drop_known(request, spec, asked, plan);
  if (plan.work.front().second.empty()) return tuned;
  if (options.dry_run) {
    for (const catalog::Case& point : plan.work.front().second)
      request.out << spec.name << " " << point.to_string() << "\n";
    for (const std::string& name : plan.strategies) request.out << "  " << name << "\n";
  }
  if (options.dry_run) return tuned;
  set_progress(request.global, request.err, plan);
  Tuned measured;
  tune_cases(plan, spec, options, budget_s, measured, request.err);
  for (const auto& [point, found] : measured.cases)
    tuned.rows.push_back({point.to_string(), spec.tuning_key(point), found, asked});
  std::move(measured.result.cases.begin(), measured.result.cases.end(),
            std::back_inserter(tuned.result.cases));
  tuned.has_run = measured.has_run;
  return tuned;
}

/// A line for each reason, with all nodes that it is about.
void list_fixed(const std::vector<catalog::FixedSteps>& fixed, std::ostream& out) {
  for (const catalog::FixedSteps& steps : fixed) {
    out << "not tuned: " << counted(steps.nodes.size(), "step") << ": " << steps.reason << ":";
    for (const std::string& node : steps.nodes) out << " " << node;
    out << "\n";
  }
}

void check_search(const TuneOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "tune: " + message);
  };
  if (options.search == "random" && options.budget_s < 0)
    refuse("--search random goes on as long as --budget SECONDS allows, which is not given");
  const Selection& s = options.selection;
  if (options.measures_again && options.tuning.empty())
    refuse("--again is of --tuning FILE, which is not given");
  if (!options.space.empty() && !(s.strategies + s.only + s.skip).empty())
    refuse("--space contradicts --strategy, --only and --skip, expected one of them");
}

/// Reports reasons on `err`, since the table omits what was wrong or failed.
void report_failures(const RunResult& result, std::ostream& err) {
  for (const CaseResult& one : result.cases) {
    if (one.status != Status::ok && !one.reason.empty())
      err << "wbench: " << one.point.to_string() << ": " << one.reason << "\n";
    for (const RunnerResult& runner : one.strategies) {
      if (runner.status == Status::ok || runner.status == Status::skipped) continue;
      err << "wbench: " << one.point.to_string() << ", " << runner.name << " is "
          << to_string(runner.status) << ": " << runner.reason << "\n";
    }
  }
}

/// Adds what was measured to what the file has by now, which another process may have changed since
/// it was read; returns the number of entries, or reports why there is none.
std::optional<int64_t> save(const TuningCache& measured, const std::string& path,
                            std::ostream& err) {
  try {
    const FileLock lock(path);
    TuningCache cache = cache_at(path);
    cache.merge(measured);
    cache.save(path);
    return cache.size();
  } catch (const Error& error) {
    err << "wbench: " << error.what() << "; nothing that was measured is kept\n";
    return std::nullopt;
  }
}

}  // namespace

int command_tune(const GlobalOptions& global, const TuneOptions& options, std::ostream& out,
                 std::ostream& err) {
  if (is_simulated()) {
    throw Error(ErrorCode::invalid_argument, "tune: the simulated GPU has no times");
  }
  const Specs specs = select_ops(options.selection.ops), ops = primitives_of(specs);
  check_search(options);
  for (const auto* spec : ops) {  // misspelt names are reported before a missing device
    if (!options.space.empty()) (void)space_of(options.space, *spec, ops);
  }
  std::optional<TuningCache> applied;
  if (!options.apply.empty()) applied = TuningCache::load(options.apply);
  const TuningCache kept = cache_at(options.tuning);
  if (!options.dry_run) require_outputs({{"--tuning", options.tuning}});
  TuningCache measured;
  const std::optional<Context> context = make_context(options.selection, err);
  if (!context) return kEnvironment;
  std::vector<Cells> rows{
      {"case", "fastest", "time", "runner-up", "vs auto", "kept", "vs vendor", "of"}};
  std::vector<catalog::FixedSteps> fixed;
  RunResult all;
  bool has_run = true, has_selected = false;
  int64_t num_known = 0;
  const TuneRequest request{global, options,  *context, ops, applied ? &*applied : nullptr,
                            kept,   measured, out,      err};
  const Budget budget(options.budget_s);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto tune = is_model(*specs[i]) ? tune_model : tune_op;
    TunedOp tuned = tune(request, *specs[i], budget.share_s(specs.size() - i));
    has_selected = has_selected || tuned.nothing.empty();
    if (!tuned.nothing.empty()) report_nothing(tuned.nothing, tuned.result, err);
    for (const auto& [name, key, found, asked] : tuned.rows) {
      rows.push_back(cells_of(name, found));
      auto entry = kept_entry(found, std::string(kernel_hash(key.primitive)));
      if (!entry) continue;
      entry->request_hash = asked;
      measured.set(context->info(), key.primitive, key.problem, std::move(*entry));
    }
    num_known += tuned.num_known;
    std::move(tuned.fixed.begin(), tuned.fixed.end(), std::back_inserter(fixed));
    has_run = has_run && tuned.has_run;
    report_failures(tuned.result, err);
    std::move(tuned.result.cases.begin(), tuned.result.cases.end(), std::back_inserter(all.cases));
    if (is_interrupted()) break;
  }
  if (options.dry_run) {
    list_fixed(fixed, out);
    return has_selected ? kSuccess : kNothingRan;
  }
  const std::string exceeded =
      budget.is_set() ? budget_text(options.budget_s, budget.passed_s()) : "";
  if (!exceeded.empty() && !global.quiet) err << "wbench: " << exceeded << "\n";
  int code = has_run ? exit_code_of(all, is_interrupted()) : kRuntimeError;
  if (rows.size() > 1) {
    out << listing_text(rows, output_width());
  } else if (code == kSuccess) {
    code = kNothingRan;
  }
  list_fixed(fixed, out);
  if (code == kNothingRan && num_known > 0) code = kSuccess;
  if (code == kNothingRan) err << "wbench: nothing was tuned: no candidate ran\n";
  if (rows.size() == 1) return code;
  if (options.tuning.empty()) {
    if (!global.quiet) err << "wbench: nothing is kept without --tuning FILE\n";
    return code;
  }
  const std::optional<int64_t> size = save(measured, options.tuning, err);
  if (!size) return is_cut_short(code) ? code : kRuntimeError;
  if (!global.quiet)
    err << "wrote " << options.tuning << ": " << counted(*size, "entry", "entries") << "\n";
  return code;
}

}  // namespace wide::bench
