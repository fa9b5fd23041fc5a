// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `tune`: measures every strategy with every policy, as `run` does, or those that a search picks,
// and stores the fastest, if it beats the choice of "auto", in a file that plans with strategy
// "auto" read.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>
#include <utility>

#include "bench/cli.hpp"
#include "bench/commands.hpp"
#include "bench/interrupt.hpp"
#include "bench/machine_checks.hpp"
#include "bench/output_files.hpp"
#include "bench/report/report.hpp"
#include "bench/report/table.hpp"
#include "bench/report/terminal.hpp"
#include "bench/running.hpp"
#include "bench/simulation.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "bench/tune.hpp"
#include "bench/tune_search.hpp"
#include "host/core/file.hpp"
#include "host/core/verified.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// Resolves primitives; throws for a model.
std::vector<const catalog::PrimitiveSpec*> tunable_ops(const std::string& ops) {
  auto specs = select_ops(ops);
  for (const catalog::PrimitiveSpec* spec : specs) {
    if (spec->tuning_key) continue;
    throw Error(ErrorCode::invalid_argument,
                "tune: " + std::string(spec->name) +
                    " has no strategies of its own, expected the primitives that it consists of");
  }
  return specs;
}

/// Loads the file, if it exists. An invalid file is an error before anything is
/// measured, and is not overwritten.
TuningCache cache_at(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  return TuningCache::load(path);
}

RunPlan plan_of(const Context& context, const TuneOptions& options) {
  RunPlan plan(context);
  plan.ceilings_hold_s = std::numeric_limits<double>::infinity();  // winners need no floor
  plan.config = options.config;
  plan.config.preset = options.selection.preset;
  plan.config.target_ci_pct = parse_percent("--target-ci", options.target_ci);
  if (options.budget_s >= 0) plan.config.budget_s = options.budget_s;
  return plan;
}

using Cells = std::vector<std::string>;

Cells cells_of(const catalog::Case& point, const TunedCase& tuned) {
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
  return {point.to_string(),
          tuned.winner.name,
          format_time(tuned.winner.time_ns),
          text(tuned.runner_up),
          vs_auto,
          kept_text(tuned),
          gain(tuned.vendor),
          std::to_string(tuned.num_candidates)};
}

/// The measurements of one op.
struct Tuned {
  RunResult result;
  std::vector<std::pair<catalog::Case, TunedCase>> cases;
  std::string nothing;  ///< why nothing was selected
  bool has_run = true;
  std::optional<Calibration> calibration;  ///< measured once
};

constexpr double kSearchShare = 0.6;  // of a case's budget; the rest is for the winners
constexpr size_t kFinalists = 2;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Runs one case with these strategies and adds it to `tuned`; null if the run failed.
const CaseResult* run_one(RunPlan plan, const catalog::PrimitiveSpec& spec,
                          const catalog::Case& point, std::vector<std::string> strategies,
                          Tuned& tuned, std::ostream& err) {
  plan.work = {{&spec, {point}}};
  plan.strategies = std::move(strategies);
  RunResult result;
  tuned.has_run = run_guarded(plan, result, err) && tuned.has_run;
  tuned.calibration = result.calibration;
  std::move(result.cases.begin(), result.cases.end(), std::back_inserter(tuned.result.cases));
  return result.cases.empty() ? nullptr : &tuned.result.cases.back();
}

/// Measures these strategies and "auto" in full; none if that failed, or if none of them was right.
/// A `budget_s` of 0 means none.
std::optional<TunedCase> tune_in_full(RunPlan plan, const catalog::PrimitiveSpec& spec,
                                      const catalog::Case& point,
                                      std::vector<std::string> strategies, double budget_s,
                                      Tuned& tuned, std::ostream& err) {
  strategies.emplace_back("auto");  // the heuristic's choice, to compare with
  plan.calibration = tuned.calibration;
  plan.config.budget_s.reset();
  if (budget_s > 0) plan.config.budget_s = budget_s;
  const uint64_t seed = plan.config.seed;
  const CaseResult* one = run_one(std::move(plan), spec, point, std::move(strategies), tuned, err);
  return one == nullptr ? std::nullopt : tuned_case(*one, spec, seed);
}

/// A winner that beats "auto" as the best of many is measured again, beside "auto" alone, which
/// decides. A case in which that is impossible is not tuned.
void confirm_winners(const RunPlan& plan, const catalog::PrimitiveSpec& spec, double budget_s,
                     Tuned& tuned, std::ostream& err) {
  const auto start = Clock::now();
  auto found = std::exchange(tuned.cases, {});
  auto num_left = std::count_if(found.begin(), found.end(),
                                [](const auto& one) { return one.second.beats_auto(); });
  for (auto& [point, first] : found) {
    if (!first.beats_auto()) {
      tuned.cases.emplace_back(point, std::move(first));
      continue;
    }
    if (is_interrupted()) continue;
    const double left = budget_s - seconds_since(start);
    const double share = budget_s > 0 ? std::max(0.1, left / static_cast<double>(num_left--)) : 0;
    const auto again = tune_in_full(plan, spec, point, {first.winner.name}, share, tuned, err);
    if (again) tuned.cases.emplace_back(point, confirmed(std::move(first), *again));
  }
}

/// Whether a case, or a strategy in it, failed rather than being skipped.
bool has_trouble(const CaseResult& c) {
  if (c.strategies.empty()) return c.status != Status::ok;
  return std::any_of(c.strategies.begin(), c.strategies.end(), [](const RunnerResult& r) {
    return r.status != Status::ok && r.status != Status::skipped;
  });
}

/// Takes few samples of some candidates, unchecked, since winners are measured again in full.
MeasureCandidates measure_of(const RunPlan& plan, const catalog::PrimitiveSpec& spec,
                             const catalog::Case& point, const std::vector<std::string>& names,
                             Tuned& tuned, std::ostream& err) {
  return [&](std::span<const size_t> candidates, int64_t samples) {
    RunPlan quick = plan;
    quick.calibration = tuned.calibration;
    quick.config.verify = "off";
    quick.config.stop = "count";
    quick.config.rounds = kMinRounds;
    quick.config.min_samples = quick.config.max_samples = samples;
    quick.config.warmup_s = std::min(quick.config.warmup_s, 0.02);
    quick.config.budget_s.reset();
    std::vector<std::string> strategies;
    for (const size_t candidate : candidates) strategies.push_back(names[candidate]);
    std::vector<std::vector<double>> times(candidates.size());
    const CaseResult* one = run_one(quick, spec, point, strategies, tuned, err);
    if (one == nullptr) return times;
    for (size_t i = 0; i < candidates.size(); ++i) {
      for (const RunnerResult& runner : one->strategies) {
        if (runner.name == strategies[i]) times[i] = deciding_samples(runner);
      }
    }
    if (!has_trouble(*one)) tuned.result.cases.pop_back();
    return times;
  };
}

/// Searches one case, and measures the search's ranking in full, best first, until one is right.
void search_case(const RunPlan& plan, const catalog::PrimitiveSpec& spec,
                 const catalog::Case& point, const TuneOptions& options, double budget_s,
                 Tuned& tuned, std::ostream& err) {
  const std::vector<std::string>& names = plan.strategies;
  const auto start = Clock::now();
  SearchLimits limits;
  limits.seed = options.config.order_seed;
  limits.samples = options.config.min_samples;
  limits.is_over = [&] {
    return is_interrupted() || (budget_s > 0 && seconds_since(start) > kSearchShare * budget_s);
  };
  const MeasureCandidates measure = measure_of(plan, spec, point, names, tuned, err);
  const SearchResult found = options.search == "random"
                                 ? search_at_random(names.size(), limits, measure)
                                 : search_by_halving(names.size(), limits, measure);
  for (size_t from = 0; from < found.ranking.size() && !is_interrupted(); from += kFinalists) {
    std::vector<std::string> finalists;
    for (size_t i = from; i < std::min(from + kFinalists, found.ranking.size()); ++i)
      finalists.push_back(names[found.ranking[i]]);
    const double left = budget_s > 0 ? std::max(0.1, budget_s - seconds_since(start)) : 0;
    auto best = tune_in_full(plan, spec, point, finalists, left, tuned, err);
    if (!best) continue;
    best->num_candidates = found.num_measured;
    tuned.cases.emplace_back(point, *best);
    return;
  }
}

/// Tunes each case in turn, with its share of the budget.
void search_op(const RunPlan& plan, const catalog::PrimitiveSpec& spec, const TuneOptions& options,
               double budget_s, Tuned& tuned, std::ostream& err) {
  const std::vector<catalog::Case>& cases = plan.work.front().second;
  const auto start = Clock::now();
  for (size_t i = 0; i < cases.size() && !is_interrupted() && tuned.has_run; ++i) {
    const double left = budget_s - seconds_since(start);
    const double share =
        budget_s > 0 ? std::max(0.1, left / static_cast<double>(cases.size() - i)) : 0;
    search_case(plan, spec, cases[i], options, share, tuned, err);
  }
}

/// Measures every candidate of every case in full.
void measure_all(RunPlan plan, const catalog::PrimitiveSpec& spec, double budget_s, Tuned& tuned,
                 std::ostream& err) {
  const auto start = Clock::now();
  plan.strategies.emplace_back("auto");
  if (budget_s > 0) plan.config.budget_s = kSearchShare * budget_s;
  tuned.has_run = run_guarded(plan, tuned.result, err);
  tuned.calibration = tuned.result.calibration;
  for (const CaseResult& one : tuned.result.cases) {
    if (auto found = tuned_case(one, spec, plan.config.seed))
      tuned.cases.emplace_back(one.point, *found);
  }
  const double left = budget_s > 0 ? std::max(0.1, budget_s - seconds_since(start)) : 0;
  confirm_winners(plan, spec, left, tuned, err);
}

/// Selects the op's strategies in --space, instead of --strategy; false if there are none.
bool narrow(Selection& selection, const std::string& space, const catalog::PrimitiveSpec& spec,
            const std::vector<const catalog::PrimitiveSpec*>& ops) {
  if (space.empty()) return true;
  selection.strategies.clear();
  for (const std::string& name : space_of(space, spec, ops))
    selection.strategies += (selection.strategies.empty() ? "" : ",") + name;
  return !selection.strategies.empty();
}

/// `budget_s` is the op's share; 0: none.
Tuned tune_op(const GlobalOptions& global, const TuneOptions& options, const Context& context,
              const catalog::PrimitiveSpec& spec,
              const std::vector<const catalog::PrimitiveSpec*>& ops, const TuningCache* applied,
              double budget_s, std::ostream& out, std::ostream& err) {
  Selection selection = options.selection;
  selection.ops = spec.name;
  selection.baselines = "none";
  const DeviceType device = context.device().type;
  if (selection.regimes.empty() && device == DeviceType::cuda) selection.regimes = "graph";
  RunPlan plan = plan_of(context, options);
  plan.tuning = applied;
  Tuned tuned;
  if (!narrow(selection, options.space, spec, ops)) {
    tuned.nothing = "--space has nothing of " + std::string(spec.name);
    return tuned;
  }
  tuned.nothing = select_work(selection, plan, tuned.result);
  plan.strategies = tune_candidates(spec, device, plan.strategies);
  if (tuned.nothing.empty() && plan.strategies.empty()) tuned.nothing = "no strategy is left";
  if (options.dry_run) {
    for (const catalog::Case& point : plan.work.front().second)
      out << spec.name << " " << point.to_string() << "\n";
    for (const std::string& name : plan.strategies) out << "  " << name << "\n";
  }
  if (!tuned.nothing.empty() || options.dry_run) return tuned;
  set_progress(global, err, plan);
  if (options.search != "exhaustive") {
    search_op(plan, spec, options, budget_s, tuned, err);
    return tuned;
  }
  measure_all(plan, spec, budget_s, tuned, err);
  return tuned;
}

void check_search(const TuneOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "tune: " + message);
  };
  if (options.search == "random" && options.budget_s < 0)
    refuse("--search random goes on as long as --budget SECONDS allows, which is not given");
  const Selection& s = options.selection;
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
  const auto specs = tunable_ops(options.selection.ops);
  check_search(options);
  for (const auto* spec : specs) {  // misspelt names are reported before a missing device
    if (!options.space.empty()) (void)space_of(options.space, *spec, specs);
  }
  std::optional<TuningCache> applied;
  if (!options.apply.empty()) applied = TuningCache::load(options.apply);
  (void)cache_at(options.tuning);
  if (!options.dry_run) require_outputs({{"--tuning", options.tuning}});
  TuningCache measured;
  const std::optional<Context> context = make_context(options.selection, err);
  if (!context) return kEnvironment;
  std::vector<Cells> rows{
      {"case", "fastest", "time", "runner-up", "vs auto", "kept", "vs vendor", "of"}};
  RunResult all;
  bool has_run = true;
  const auto start = Clock::now();
  for (size_t i = 0; i < specs.size(); ++i) {
    const catalog::PrimitiveSpec* spec = specs[i];
    const double left = options.budget_s - seconds_since(start);
    const double share =
        options.budget_s > 0 ? std::max(0.1, left / static_cast<double>(specs.size() - i)) : 0;
    Tuned tuned = tune_op(global, options, *context, *spec, specs, applied ? &*applied : nullptr,
                          share, out, err);
    if (!tuned.nothing.empty()) report_nothing(tuned.nothing, tuned.result, err);
    for (const auto& [point, one] : tuned.cases) {
      rows.push_back(cells_of(point, one));
      const TuningKey key = spec->tuning_key(point);
      if (auto entry = kept_entry(one, std::string(kernel_hash(key.primitive))))
        measured.set(context->info(), key.primitive, key.problem, std::move(*entry));
    }
    has_run = has_run && tuned.has_run;
    report_failures(tuned.result, err);
    std::move(tuned.result.cases.begin(), tuned.result.cases.end(), std::back_inserter(all.cases));
    if (is_interrupted()) break;
  }
  if (options.dry_run) return kSuccess;
  const std::string exceeded =
      options.budget_s > 0 ? budget_text(options.budget_s, seconds_since(start)) : "";
  if (!exceeded.empty()) err << "wbench: " << exceeded << "\n";
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
    return code;
  }
  const std::optional<int64_t> size = save(measured, options.tuning, err);
  if (!size) return is_cut_short(code) ? code : kRuntimeError;
  if (!global.quiet)
    err << "wrote " << options.tuning << ": " << *size << (*size == 1 ? " entry\n" : " entries\n");
  return code;
}

}  // namespace wide::bench
