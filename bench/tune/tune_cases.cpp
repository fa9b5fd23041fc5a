// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune/tune_cases.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <ostream>
#include <span>

#include "bench/command/options.hpp"
#include "bench/command/running.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/sha256.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "bench/tune/tune_search.hpp"
#include "host/core/verified.hpp"

namespace wide::bench {

namespace {

constexpr double kSearchShare = 0.6;  // of a case's budget; the rest is for the winners
constexpr size_t kFinalists = 2;

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
  const Budget budget(budget_s);
  auto found = std::exchange(tuned.cases, {});
  auto num_left = std::count_if(found.begin(), found.end(),
                                [](const auto& one) { return one.second.beats_auto(); });
  for (auto& [point, first] : found) {
    if (!first.beats_auto()) {
      tuned.cases.emplace_back(point, std::move(first));
      continue;
    }
    if (is_interrupted()) continue;
    const double share = budget.share_s(static_cast<size_t>(num_left--));
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
  const Budget budget(budget_s);
  SearchLimits limits;
  limits.seed = options.config.order_seed;
  limits.samples = options.config.min_samples;
  limits.is_over = [&] { return is_interrupted() || budget.has_passed(kSearchShare); };
  const MeasureCandidates measure = measure_of(plan, spec, point, names, tuned, err);
  const SearchResult found = options.search == "random"
                                 ? search_at_random(names.size(), limits, measure)
                                 : search_by_halving(names.size(), limits, measure);
  for (size_t from = 0; from < found.ranking.size() && !is_interrupted(); from += kFinalists) {
    std::vector<std::string> finalists;
    for (size_t i = from; i < std::min(from + kFinalists, found.ranking.size()); ++i)
      finalists.push_back(names[found.ranking[i]]);
    auto best = tune_in_full(plan, spec, point, finalists, budget.share_s(1), tuned, err);
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
  const Budget budget(budget_s);
  for (size_t i = 0; i < cases.size() && !is_interrupted() && tuned.has_run; ++i)
    search_case(plan, spec, cases[i], options, budget.share_s(cases.size() - i), tuned, err);
}

/// Measures every candidate of every case in full.
void measure_all(RunPlan plan, const catalog::PrimitiveSpec& spec, double budget_s, Tuned& tuned,
                 std::ostream& err) {
  const Budget budget(budget_s);
  plan.strategies.emplace_back("auto");
  if (budget_s > 0) plan.config.budget_s = kSearchShare * budget_s;
  tuned.has_run = run_guarded(plan, tuned.result, err);
  tuned.calibration = tuned.result.calibration;
  for (const CaseResult& one : tuned.result.cases) {
    if (auto found = tuned_case(one, spec, plan.config.seed))
      tuned.cases.emplace_back(one.point, *found);
  }
  confirm_winners(plan, spec, budget.share_s(1), tuned, err);
}

}  // namespace

double Budget::share_s(size_t num_left) const {
  return is_set() ? std::max(0.1, (seconds_ - passed_s()) / static_cast<double>(num_left)) : 0;
}

RunPlan tuning_plan(const TuneRequest& request) {
  const TuneOptions& options = request.options;
  RunPlan plan(request.context);
  plan.tuning = request.applied;
  plan.ceilings_hold_s = std::numeric_limits<double>::infinity();  // winners need no floor
  plan.config = options.config;
  plan.config.preset = options.selection.preset;
  plan.config.target_ci_pct = parse_percent("--target-ci", options.target_ci);
  if (options.budget_s >= 0) plan.config.budget_s = options.budget_s;
  return plan;
}

std::string request_hash(const RunPlan& plan, const TuneOptions& options) {
  RunConfig config = plan.config;
  config.preset.clear();  // the case says what it is
  const nlohmann::ordered_json request{plan.strategies, options.search, options.apply,
                                       config_json(config)};
  return sha256(request.dump()).substr(0, 16);
}

bool is_known(const TuneRequest& request, const TuningKey& key, const std::string& request_hash) {
  if (request.options.measures_again) return false;
  const TuningEntry* entry = request.kept.find(request.context.info(), key.primitive, key.problem);
  return entry != nullptr && entry->request_hash == request_hash &&
         entry->kernel_hash == kernel_hash(key.primitive);
}

void tune_cases(const RunPlan& plan, const catalog::PrimitiveSpec& spec, const TuneOptions& options,
                double budget_s, Tuned& tuned, std::ostream& err) {
  if (options.search == "exhaustive") {
    measure_all(plan, spec, budget_s, tuned, err);
  } else {
    search_op(plan, spec, options, budget_s, tuned, err);
  }
}

}  // namespace wide::bench
