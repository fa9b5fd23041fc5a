// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "bench/run/scaling.hpp"
#include "bench/statistics/statistics.hpp"

namespace wide::bench {

namespace {

constexpr double kWorthwhile = 1.05;

struct Best {
  const CaseResult* point = nullptr;
  const Speedup* speedup = nullptr;  ///< null if the case was tried and nothing is comparable
};

/// The strategy of a case with the largest speedup; none if the case does not take part.
std::optional<Best> best_of(const CaseResult& result, Regime regime, Baseline baseline) {
  Best best{&result, nullptr};
  bool takes_part = result.status != Status::ok && result.status != Status::skipped;
  for (const Speedup& speedup : result.speedups) {
    if (speedup.regime != regime || speedup.baseline != baseline) continue;
    takes_part = true;
    if (!speedup.speedup_ratio) continue;
    if (best.speedup == nullptr || *speedup.speedup_ratio > *best.speedup->speedup_ratio)
      best.speedup = &speedup;
  }
  return takes_part ? std::optional(best) : std::nullopt;
}

bool is_faster(const Best& best) {
  return best.speedup != nullptr && best.speedup->verdict == "faster";
}

bool is_worthwhile(const Best& best) {
  return is_faster(best) && best.speedup->ci_lo && *best.speedup->ci_lo >= kWorthwhile;
}

/// Whether a verdict "faster" cannot be excluded: its interval reaches that verdict's bound, or it
/// has too few rounds to tell.
bool may_be_faster(const Best& best) {
  if (best.speedup == nullptr) return false;
  const Speedup& s = *best.speedup;
  return s.pairs < kMinPairs || !s.ci_hi ||
         *s.ci_hi > faster_bound(s.aa_floor_pct.value_or(0) / 100);
}

/// The smallest n from which on, up to the largest n of the sweep, `holds` is true for every case.
template <class F>
std::optional<int64_t> smallest_from_which(const std::map<int64_t, std::vector<Best>>& by_n,
                                           const F& holds) {
  std::optional<int64_t> smallest;
  for (auto it = by_n.rbegin(); it != by_n.rend(); ++it) {
    if (!std::all_of(it->second.begin(), it->second.end(), holds)) break;
    smallest = it->first;
  }
  return smallest;
}

OpSummary summarize_one(const std::string& op, Regime regime, Baseline baseline,
                        const std::vector<Best>& bests) {
  OpSummary summary{op, regime, baseline, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  std::map<int64_t, std::vector<Best>> by_n;
  std::map<std::string, int64_t> wins;
  double logs = 0;
  int64_t compared = 0;
  for (const Best& best : bests) {
    by_n[best.point->point.integer("n")].push_back(best);
    if (best.speedup == nullptr) continue;
    ++compared;
    ++wins[best.speedup->strategy];
    logs += std::log(*best.speedup->speedup_ratio);
    if (!summary.best_speedup_ratio || *best.speedup->speedup_ratio > *summary.best_speedup_ratio) {
      summary.best_speedup_ratio = best.speedup->speedup_ratio;
      summary.best_strategy = best.speedup->strategy;
      summary.best_case = best.point->point.to_string();
    }
  }
  summary.crossover_n = smallest_from_which(by_n, is_faster);
  summary.crossover_lo = smallest_from_which(by_n, may_be_faster);
  summary.crossover_hi = summary.crossover_n;
  summary.recommended_threshold = smallest_from_which(by_n, is_worthwhile);
  summary.strategy_wins.assign(wins.begin(), wins.end());
  std::stable_sort(summary.strategy_wins.begin(), summary.strategy_wins.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (compared > 0) summary.geomean_speedup = std::exp(logs / static_cast<double>(compared));
  return summary;
}

}  // namespace

std::vector<OpSummary> summarize(std::span<const CaseResult> cases) {
  std::vector<std::tuple<std::string, Regime, Baseline>> keys;  // in order of appearance
  std::map<std::tuple<std::string, Regime, Baseline>, std::vector<Best>> groups;
  for (const CaseResult& result : cases) {
    for (const Regime regime : {Regime::stream, Regime::graph, Regime::cpu, Regime::cold}) {
      for (const Baseline baseline : kBaselines) {
        const auto best = best_of(result, regime, baseline);
        if (!best) continue;
        const auto key = std::make_tuple(result.point.op(), regime, baseline);
        if (!groups.contains(key)) keys.push_back(key);
        groups[key].push_back(*best);
      }
    }
  }
  std::vector<OpSummary> summaries;
  for (const auto& key : keys) {
    const auto& [op, regime, baseline] = key;
    const auto is_compared = [](const Best& best) { return best.speedup != nullptr; };
    if (std::none_of(groups[key].begin(), groups[key].end(), is_compared)) continue;
    summaries.push_back(summarize_one(op, regime, baseline, groups[key]));
    summaries.back().scaling_fits = scaling_fits(cases, op, regime);
  }
  return summaries;
}

std::string summary_definitions() {
  return R"(  speedup        baseline time / strategy time: exp(median over rounds of log(ratio of the
                 two medians of a round)), with its 95 % bootstrap interval over rounds
  crossover N    smallest N of the sweep from which on, in every case with that or a larger N, the
                 fastest strategy is `faster`: its interval lies above 1.01 and the noise floor of --aa,
                 from six rounds or more; after it, if different, the smallest from which on the
                 intervals only reach there
  threshold      the same with the interval at or above 1.05, too: where going wide is worth its trouble
  wins           in how many cases a strategy has the largest speedup
  best           the largest speedup of the sweep, with its strategy and case
  geomean        geometric mean, over cases, of the fastest strategy's speedup
)";
}

}  // namespace wide::bench
