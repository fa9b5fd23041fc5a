// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune/tune.hpp"

#include <algorithm>

#include "bench/cases/value_spec.hpp"
#include "bench/run/evaluate.hpp"
#include "bench/run/runner.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr std::string_view kAuto = "auto";

std::optional<double> median_in(const RunnerResult& runner, Regime regime) {
  for (const Measurement& m : runner.measurements) {
    if (m.regime == regime && m.stats.median_ns > 0) return m.stats.median_ns;
  }
  return std::nullopt;
}

/// A strategy that was not checked, or was found wrong once, must not be recommended.
bool is_right(const RunnerResult& runner) {
  return runner.status == Status::ok && runner.verify.before == "pass" &&
         runner.verify.after == "pass" && runner.verify.elements_compared > 0;
}

bool is_vendors(const catalog::PrimitiveSpec& spec, const std::string& strategy) {
  return std::any_of(spec.strategies.begin(), spec.strategies.end(),
                     [&](const catalog::StrategyInfo& info) {
                       return info.device == DeviceType::cuda && info.name == strategy &&
                              info.kind != catalog::StrategyKind::hand_written;
                     });
}

/// By the rule that judges speedups of a run, with "auto" in the baseline's place.
Speedup compared(const RunnerResult& winner, const RunnerResult* automatic, Regime regime,
                 uint64_t seed) {
  if (automatic != nullptr) {
    for (const Speedup& speedup : find_speedups({&winner, 1}, {automatic, 1}, seed)) {
      if (speedup.regime == regime) return speedup;
    }
  }
  Speedup unknown;
  unknown.verdict = "not_comparable";
  return unknown;
}

/// A right candidate with its median.
struct Candidate {
  const RunnerResult* runner;
  double time_ns;
};

bool is_same_way(const RunnerResult& a, const RunnerResult& b) {
  return a.strategy == b.strategy && a.policy == b.policy;
}

/// The fastest whose verdict against "auto" is "faster", else the fastest of all: so one whose
/// times scatter does not hide another. Candidates after auto's own choice, measured under its own
/// name, are not faster than that, whatever the time of "auto".
size_t find_winner(const std::vector<Candidate>& candidates, const RunnerResult* automatic,
                   Regime regime, uint64_t seed) {
  for (size_t i = 0; automatic != nullptr && i < candidates.size(); ++i) {
    const RunnerResult& runner = *candidates[i].runner;
    if (is_same_way(runner, *automatic)) break;
    if (compared(runner, automatic, regime, seed).verdict == "faster") return i;
  }
  return 0;
}

Timed timed(const Candidate& candidate) {
  return {candidate.runner->name, candidate.time_ns};
}

std::optional<TunedCase> tuned_in(const CaseResult& result, const catalog::PrimitiveSpec& spec,
                                  Regime regime, uint64_t seed) {
  TunedCase tuned;
  tuned.regime = regime;
  std::vector<Candidate> candidates;
  const RunnerResult* automatic = nullptr;
  for (const RunnerResult& runner : result.strategies) {
    const std::optional<double> time_ns = median_in(runner, regime);
    if (!time_ns || !is_right(runner)) continue;
    if (runner.name != kAuto) {
      candidates.push_back({&runner, *time_ns});
      continue;
    }
    tuned.automatic = Timed{runner.strategy, *time_ns};
    tuned.automatic_policy = runner.policy;
    automatic = &runner;
  }
  if (candidates.empty()) return std::nullopt;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  const size_t first = find_winner(candidates, automatic, regime, seed);
  const RunnerResult& winner = *candidates[first].runner;
  tuned.winner = timed(candidates[first]);
  tuned.strategy = winner.strategy;
  tuned.policy = winner.policy;
  tuned.vs_auto = compared(winner, automatic, regime, seed);
  tuned.num_candidates = static_cast<int64_t>(candidates.size());
  if (candidates.size() > 1) tuned.runner_up = timed(candidates[first == 0 ? 1 : 0]);
  for (const Candidate& candidate : candidates) {
    if (regime == Regime::cpu || !is_vendors(spec, candidate.runner->strategy)) continue;
    tuned.vendor = timed(candidate);
    break;
  }
  return tuned;
}

constexpr Regime kDeciding[] = {Regime::graph, Regime::stream, Regime::cold, Regime::cpu};

/// Splits "op/strategy:policy" into its parts.
struct SpaceItem {
  std::string op, way;
  PlanOptions options;
};

SpaceItem space_item(const std::string& text) {
  const size_t slash = text.find('/');
  SpaceItem item;
  if (slash != std::string::npos) item.op = text.substr(0, slash);
  item.way = slash == std::string::npos ? text : text.substr(slash + 1);
  item.options = plan_options(item.way);
  return item;
}

bool has_way(const catalog::PrimitiveSpec& spec, const SpaceItem& item) {
  const bool names_policy = item.way.find(':') != std::string::npos;
  return std::any_of(spec.strategies.begin(), spec.strategies.end(), [&](const auto& info) {
    const auto& policies = info.policies;
    return info.name == item.options.strategy &&
           (!names_policy ||
            std::find(policies.begin(), policies.end(), item.options.policy) != policies.end());
  });
}

[[noreturn]] void refuse_item(const std::string& text, const SpaceItem& item,
                              const std::vector<const catalog::PrimitiveSpec*>& ops) {
  std::vector<std::string> known;
  const auto add = [&](const std::string& name) {  // once: a strategy may exist on both devices
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  };
  for (const catalog::PrimitiveSpec* spec : ops) {
    const std::string prefix = item.op.empty() ? "" : std::string(spec->name) + "/";
    for (const catalog::StrategyInfo& info : spec->strategies) {
      add(prefix + std::string(info.name));
      for (const std::string_view policy : info.policies)
        add(prefix + std::string(info.name) + ":" + std::string(policy));
    }
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  throw Error(ErrorCode::invalid_argument,
              "--space: " + catalog::unknown_name_message("strategy", text, views));
}

}  // namespace

std::vector<std::string> space_of(const std::string& list, const catalog::PrimitiveSpec& spec,
                                  const std::vector<const catalog::PrimitiveSpec*>& ops) {
  std::vector<std::string> names;
  for (const std::string& text : parse_list("space", list)) {
    if (text == kAll) {
      for (const catalog::StrategyInfo& info : spec.strategies) names.emplace_back(info.name);
      continue;
    }
    const SpaceItem item = space_item(text);
    const auto takes = [&](const catalog::PrimitiveSpec* one) {
      return (item.op.empty() || item.op == one->name) && has_way(*one, item);
    };
    if (std::none_of(ops.begin(), ops.end(), takes)) refuse_item(text, item, ops);
    if (takes(&spec)) names.push_back(item.way);
  }
  return names;
}

std::vector<double> deciding_samples(const RunnerResult& runner) {
  if (runner.status != Status::ok) return {};
  for (const Regime regime : kDeciding) {
    for (const Measurement& m : runner.measurements) {
      if (m.regime == regime && !m.samples_ns.empty()) return m.samples_ns;
    }
  }
  return {};
}

std::vector<std::string> tune_candidates(const catalog::PrimitiveSpec& spec, DeviceType device,
                                         const std::vector<std::string>& named) {
  std::vector<std::string> names;
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.device != device) continue;
    const std::string strategy(info.name);
    std::vector<std::string> ways;
    for (const std::string_view policy : info.policies) {
      ways.push_back(strategy + ":" + std::string(policy));
    }
    if (ways.empty()) ways.push_back(strategy);
    for (const std::string& way : ways) {
      const bool is_named = std::any_of(named.begin(), named.end(), [&](const std::string& name) {
        return name == way || name == strategy;
      });
      if (named.empty() || is_named) names.push_back(way);
    }
  }
  return names;
}

bool TunedCase::is_autos_own() const {
  return automatic && automatic->name == strategy && automatic_policy == policy;
}

std::optional<TunedCase> tuned_case(const CaseResult& result, const catalog::PrimitiveSpec& spec,
                                    uint64_t seed) {
  for (const Regime regime : kDeciding) {
    if (auto tuned = tuned_in(result, spec, regime, seed)) return tuned;
  }
  return std::nullopt;
}

TunedCase confirmed(TunedCase found, const TunedCase& again) {
  found.winner = again.winner;
  found.automatic = again.automatic;
  found.automatic_policy = again.automatic_policy;
  found.vs_auto = again.vs_auto;
  return found;
}

std::optional<TuningEntry> kept_entry(const TunedCase& tuned, const std::string& kernel_hash) {
  TuningEntry entry;
  entry.num_candidates = tuned.num_candidates;
  entry.kernel_hash = kernel_hash;
  entry.is_autos_own = !tuned.beats_auto();
  if (entry.is_autos_own && !tuned.automatic) return std::nullopt;
  entry.strategy = entry.is_autos_own ? tuned.automatic->name : tuned.strategy;
  entry.policy = entry.is_autos_own ? tuned.automatic_policy : tuned.policy;
  entry.time_us = 1e-3 * (entry.is_autos_own ? *tuned.automatic : tuned.winner).time_ns;
  return entry;
}

std::string kept_text(const TunedCase& tuned) {
  if (tuned.beats_auto()) return tuned.winner.name;
  if (!tuned.automatic) return "-";
  return tuned.is_autos_own() ? "auto (same choice)" : "auto: " + tuned.vs_auto.verdict;
}

}  // namespace wide::bench
