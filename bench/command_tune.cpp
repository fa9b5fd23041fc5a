// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `tune`: measures every strategy by every policy, as `run` does, and keeps the fastest in a file
// that plans with strategy "auto" read.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/interrupt.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/running.hpp"
#include "bench/simulation.hpp"
#include "bench/tune.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The ops whose plans read a cache; throws for any other.
std::vector<const catalog::PrimitiveSpec*> tunable_ops(const std::string& ops) {
  auto specs = select_ops(ops);
  if (ops == "all") std::erase_if(specs, [](const auto* spec) { return !spec->tuning_key; });
  for (const catalog::PrimitiveSpec* spec : specs) {
    if (spec->tuning_key) continue;
    std::string known;
    for (const catalog::PrimitiveSpec* other : catalog::primitives()) {
      if (other->tuning_key) known += (known.empty() ? "" : ", ") + std::string(other->name);
    }
    throw Error(ErrorCode::invalid_argument, "tune: plans of " + std::string(spec->name) +
                                                 " read no tuning cache, expected " + known);
  }
  return specs;
}

/// Of the file, where there is one. A file that is not understood is an error before anything is
/// measured, and stays as it is.
TuningCache cache_at(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  return TuningCache::load(path);
}

RunPlan plan_of(const Context& context, const TuneOptions& options) {
  RunPlan plan(context);
  plan.config = options.config;
  plan.config.preset = options.selection.preset;
  plan.config.target_ci_pct = parse_percent("--target-ci", options.target_ci);
  if (options.budget_s >= 0) plan.config.budget_s = options.budget_s;
  return plan;
}

using Row = std::vector<std::string>;

Row row_of(const catalog::Case& point, const TunedCase& tuned) {
  const auto text = [](const std::optional<Timed>& timed) {
    return timed ? fmt::format("{} {}", timed->name, format_time(timed->time_ns))
                 : std::string("-");
  };
  const auto gain = [&](const std::optional<Timed>& timed) {
    if (!timed) return std::string("-");
    return fmt::format("{:.2f}x {}", timed->time_ns / tuned.winner.time_ns, timed->name);
  };
  return {point.to_string(),
          tuned.winner.name,
          format_time(tuned.winner.time_ns),
          text(tuned.runner_up),
          gain(tuned.automatic),
          gain(tuned.vendor),
          std::to_string(tuned.num_candidates)};
}

/// What was measured of one op.
struct Tuned {
  RunResult result;
  std::vector<std::pair<catalog::Case, TunedCase>> cases;
  std::string nothing;  ///< why nothing was selected
  bool has_run = true;
};

Tuned tune_op(const GlobalOptions& global, const TuneOptions& options, const Context& context,
              const catalog::PrimitiveSpec& spec, std::ostream& out, std::ostream& err) {
  Selection selection = options.selection;
  selection.ops = spec.name;
  selection.baselines = "none";
  const DeviceType device = context.device().type;
  if (selection.regimes.empty() && device == DeviceType::cuda) selection.regimes = "graph";
  RunPlan plan = plan_of(context, options);
  Tuned tuned;
  tuned.nothing = select_work(selection, plan, tuned.result);
  plan.strategies = tune_candidates(spec, device, plan.strategies);
  if (tuned.nothing.empty() && plan.strategies.empty()) tuned.nothing = "no strategy is left";
  if (options.dry_run) {
    for (const catalog::Case& point : plan.work.front().second)
      out << spec.name << " " << point.to_string() << "\n";
    for (const std::string& name : plan.strategies) out << "  " << name << "\n";
  }
  if (!tuned.nothing.empty() || options.dry_run) return tuned;
  plan.strategies.emplace_back("auto");  // the heuristic's choice, to compare with
  set_progress(global, err, plan);
  tuned.has_run = run_guarded(plan, tuned.result, err);
  for (const CaseResult& one : tuned.result.cases) {
    if (auto found = tuned_case(one, spec)) tuned.cases.emplace_back(one.point, *found);
  }
  return tuned;
}

/// Reasons on `err`: what was wrong or failed is not in the table.
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

bool save(const TuningCache& cache, const std::string& path, std::ostream& err) {
  try {
    cache.save(path);
    return true;
  } catch (const Error& error) {
    err << "wbench: " << error.what() << "\n";
    return false;
  }
}

}  // namespace

int command_tune(const GlobalOptions& global, const TuneOptions& options, std::ostream& out,
                 std::ostream& err) {
  if (is_simulated()) {
    throw Error(ErrorCode::invalid_argument, "tune: the simulated GPU has no times");
  }
  const auto specs = tunable_ops(options.selection.ops);
  TuningCache cache = cache_at(options.tuning);
  const std::optional<Context> context = make_context(options.selection, err);
  if (!context) return kEnvironment;
  std::vector<Row> rows{{"case", "fastest", "time", "runner-up", "vs auto", "vs vendor", "of"}};
  RunResult all;
  bool has_run = true;
  for (const catalog::PrimitiveSpec* spec : specs) {
    Tuned tuned = tune_op(global, options, *context, *spec, out, err);
    if (!tuned.nothing.empty()) report_nothing(tuned.nothing, tuned.result, err);
    for (const auto& [point, one] : tuned.cases) {
      rows.push_back(row_of(point, one));
      cache.set(context->info(), spec->name, spec->tuning_key(point),
                {one.strategy, one.policy, one.winner.time_ns * 1e-3, one.num_candidates,
                 std::string(kernel_hash(spec->name))});
    }
    has_run = has_run && tuned.has_run;
    report_failures(tuned.result, err);
    std::move(tuned.result.cases.begin(), tuned.result.cases.end(), std::back_inserter(all.cases));
    if (is_interrupted()) break;
  }
  if (options.dry_run) return kSuccess;
  int code = has_run ? exit_code_of(all, is_interrupted()) : kRuntimeError;
  if (rows.size() > 1) {
    out << listing_text(rows, output_width());
  } else if (code == kSuccess) {
    code = kNothingRan;
  }
  if (code == kNothingRan) err << "wbench: nothing was tuned: no candidate ran\n";
  if (rows.size() == 1) return code;
  if (options.tuning.empty()) {
    err << "wbench: nothing is kept without --tuning FILE\n";
  } else if (!save(cache, options.tuning, err)) {
    return code == kInterrupted ? code : kRuntimeError;
  } else if (!global.quiet) {
    err << "wrote " << options.tuning << ": " << cache.size() << " entries\n";
  }
  return code;
}

}  // namespace wide::bench
