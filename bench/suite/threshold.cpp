// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/suite/threshold.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "bench/document/metrics.hpp"
#include "bench/statistics/statistics.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

/// A strategy's value in one case and regime, with its 95 % interval over rounds.
struct Held {
  std::string strategy;
  double value = 0, lo = 0, hi = 0;
  int64_t rounds = 0;
  /// With fewer, no interval has its nominal coverage (statistics.hpp).
  bool has_enough_rounds() const { return rounds >= kMinPairs; }
};

int64_t rounds_of(const Measurement& m) {
  return std::ssize(std::set<int64_t>(m.samples_round.begin(), m.samples_round.end()));
}

/// At the median of time, and at the ends of its interval: rates are inverse to time.
std::optional<Held> held_of(const RunnerResult& r, const Measurement& m, const Metric& metric) {
  const std::optional<double> value = metric.value(m);
  const Statistics& s = m.stats;
  if (r.status != Status::ok || m.below_resolution || !value || !(s.ci_lo_ns > 0))
    return std::nullopt;
  const double ratio_lo = s.ci_lo_ns / s.median_ns, ratio_hi = s.ci_hi_ns / s.median_ns;
  return metric.better == Better::lower
             ? Held{r.name, *value, *value * ratio_lo, *value * ratio_hi, rounds_of(m)}
             : Held{r.name, *value, *value / ratio_hi, *value / ratio_lo, rounds_of(m)};
}

/// For every measured regime: the best strategy, or the named one.
using ByRegime = std::map<Regime, std::optional<Held>>;

void keep_best(std::optional<Held>& best, std::optional<Held> held, Better better) {
  if (!held || !std::isfinite(held->value)) return;
  const auto is_better = [&] {
    if (held->has_enough_rounds() != best->has_enough_rounds()) return held->has_enough_rounds();
    return better == Better::lower ? held->value < best->value : held->value > best->value;
  };
  if (!best || is_better()) best = std::move(held);
}

ByRegime values_of(const Threshold& t, const CaseResult& c) {
  ByRegime values;
  const auto is_meant = [&](const std::string& strategy, Regime regime) {
    return (t.strategy.empty() || t.strategy == strategy) && (!t.regime || *t.regime == regime);
  };
  if (t.metric == kSpeedup) {
    for (const Speedup& s : c.speedups) {
      if (!is_meant(s.strategy, s.regime) || s.baseline != t.baseline) continue;
      auto& best = values[s.regime];
      if (s.speedup_ratio && s.ci_lo && s.ci_hi)
        keep_best(best, Held{s.strategy, *s.speedup_ratio, *s.ci_lo, *s.ci_hi, s.pairs},
                  Better::higher);
    }
    return values;
  }
  const Metric& metric = find_measured_metric(t.metric);
  for (const RunnerResult& r : c.strategies) {
    for (const Measurement& m : r.measurements) {
      if (is_meant(r.name, m.regime))
        keep_best(values[m.regime], held_of(r, m, metric), metric.better);
    }
  }
  return values;
}

Reach reach_of(const Threshold& t, const std::optional<Held>& held) {
  if (!held || !held->has_enough_rounds()) return Reach::undecided;
  if (t.min) {
    if (held->lo >= *t.min) return Reach::met;
    return held->hi < *t.min ? Reach::missed : Reach::undecided;
  }
  if (held->hi <= *t.max) return Reach::met;
  return held->lo > *t.max ? Reach::missed : Reach::undecided;
}

std::string held_text(const std::optional<Held>& held) {
  if (!held) return "nothing comparable";
  const std::string text =
      fmt::format("{} {:.4g} [{:.4g}, {:.4g}]", held->strategy, held->value, held->lo, held->hi);
  if (held->has_enough_rounds()) return text;
  return text + fmt::format(" of {}, expected {}", counted(held->rounds, "round"), kMinPairs);
}

/// The distance from the bound, smaller is better; 0 for a missing value.
double distance(const Threshold& t, const std::optional<Held>& held) {
  if (!held) return 0;
  return t.min ? *t.min / held->value : held->value / *t.max;
}

}  // namespace

ThresholdOutcome hold(const Threshold& t, const RunResult& result) {
  ThresholdOutcome outcome;
  std::pair<Reach, double> worst{Reach::met, 0};
  for (const CaseResult& c : result.cases) {
    for (const auto& [regime, held] : values_of(t, c)) {
      const Reach reach = reach_of(t, held);
      (reach == Reach::met      ? outcome.met
       : reach == Reach::missed ? outcome.missed
                                : outcome.undecided) += 1;
      if (reach == Reach::met) continue;
      // A miss is worse than an undecided one, whatever the distances.
      const std::pair<Reach, double> rank{reach, distance(t, held)};
      const bool is_worse = worst.first == Reach::met ||
                            (rank.first == Reach::missed && worst.first != Reach::missed) ||
                            (rank.first == worst.first && rank.second > worst.second);
      if (!is_worse) continue;
      worst = rank;
      outcome.worst =
          fmt::format("{}, {}: {}", c.point.to_string(), to_string(regime), held_text(held));
    }
  }
  if (outcome.missed > 0) {
    outcome.reach = Reach::missed;
  } else if (outcome.met > 0 && outcome.undecided == 0) {
    outcome.reach = Reach::met;
  } else if (outcome.worst.empty()) {
    outcome.worst = "nothing was measured that it could be held against";
  }
  return outcome;
}

std::string to_string(const Threshold& t) {
  std::string text = t.metric;
  if (t.baseline) text += " vs " + std::string(to_string(*t.baseline));
  text += t.min ? fmt::format(" >= {}", *t.min) : fmt::format(" <= {}", *t.max);
  std::string of = t.strategy;
  if (t.regime) of += (of.empty() ? "" : ", ") + std::string(to_string(*t.regime));
  return of.empty() ? text : text + " (" + of + ")";
}

std::string_view to_string(Reach reach) {
  constexpr std::string_view kNames[] = {"met", "missed", "undecided"};
  return kNames[static_cast<size_t>(reach)];
}

}  // namespace wide::bench
