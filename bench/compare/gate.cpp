// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/gate.hpp"

#include <algorithm>
#include <cmath>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/moderated.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/multiple.hpp"
#include "bench/statistics/noise_floor.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

constexpr double kDisjoint = 1.005;
constexpr double kSameClock = 1.01;
constexpr uint64_t kSeed = 1;
constexpr double kMild = 5, kModerate = 10, kSevere = 20;  // percent

/// Logarithms, with signs such that larger is worse.
std::vector<double> costs(std::span<const double> values, Better better) {
  std::vector<double> logs;
  for (const double value : values)
    logs.push_back(better == Better::lower ? std::log(value) : -std::log(value));
  return logs;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}
double smallest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double percent(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

std::optional<double> as_log(std::optional<double> pct) {
  return pct ? std::optional(std::log1p(*pct / 100)) : std::nullopt;
}

Severity severity_of(Verdict verdict, double worst_log_ratio) {
  if (verdict == Verdict::faster) return Severity::improvement;
  const double pct = percent(worst_log_ratio);
  if (verdict != Verdict::slower || pct < kMild) return Severity::none;
  return pct < kModerate ? Severity::mild : pct < kSevere ? Severity::moderate : Severity::severe;
}

struct Decision {
  Verdict verdict;
  std::string_view reason;
};

/// What a change must exceed, as logarithms.
struct Bounds {
  double threshold = 0;
  std::optional<double> floor;
  double min_effect = 0;
  bool may_be_chance = false;
};

Interval interval_of(std::span<const double> later, std::span<const double> earlier,
                     IntervalMethod method) {
  return method == IntervalMethod::bootstrap ? bootstrap_difference(later, earlier, kSeed)
                                             : *welch_interval(later, earlier);
}

Decision decide_by_interval(double change, const Interval& interval, const Bounds& bounds) {
  const double threshold = bounds.threshold;
  if (interval.lo >= -threshold && interval.hi <= threshold)
    return {Verdict::same, "within_threshold"};
  const bool is_slower = interval.lo > threshold, is_faster = interval.hi < -threshold;
  if (!is_slower && !is_faster) return {Verdict::ambiguous, "wide_interval"};
  if (!(std::fabs(change) > bounds.floor.value_or(0))) return {Verdict::ambiguous, "noise_floor"};
  if (!(std::fabs(change) > bounds.min_effect)) return {Verdict::ambiguous, "small_effect"};
  if (bounds.may_be_chance) return {Verdict::ambiguous, "chance"};
  return {is_slower ? Verdict::slower : Verdict::faster, "interval"};
}

Decision decide_by_ranges(const Side& base, const Side& candidate, double change,
                          const Bounds& bounds, Better better) {
  const double gap = std::log(kDisjoint);
  const auto is_above = [&](const Side& upper, const Side& lower) {
    return smallest(costs(upper.best, better)) > largest(costs(lower.q3, better)) + gap;
  };
  const bool is_slower = is_above(candidate, base), is_faster = is_above(base, candidate);
  if (!is_slower && !is_faster) return {Verdict::ambiguous, "few_runs"};
  if (!bounds.floor) return {Verdict::ambiguous, "unknown_noise"};
  if (!(std::fabs(change) > std::max({bounds.threshold, *bounds.floor, bounds.min_effect})))
    return {Verdict::ambiguous, "small_change"};
  return {is_slower ? Verdict::slower : Verdict::faster, "disjoint_ranges"};
}

/// As costs(), in cycles: up to a constant, a cost is the logarithm of a time.
std::vector<double> cycle_costs(const std::vector<double>& costs, const Side& side) {
  std::vector<double> cycles;
  for (size_t i = 0; i < costs.size(); ++i) cycles.push_back(costs[i] + std::log(side.sm_mhz[i]));
  return cycles;
}

/// The change of the clocks of both sides, and the change in cycles.
struct ClockChange {
  double clock = 0, cycles = 0;      ///< logarithms of ratios
  std::optional<Interval> interval;  ///< of `cycles`; none below kMinRuns
};
std::optional<ClockChange> clock_change(const Side& base, const Side& candidate,
                                        const std::vector<double>& before,
                                        const std::vector<double>& after, IntervalMethod method) {
  if (base.sm_mhz.size() != before.size() || candidate.sm_mhz.size() != after.size())
    return std::nullopt;
  const std::vector<double> earlier = cycle_costs(before, base),
                            later = cycle_costs(after, candidate);
  ClockChange change;
  change.cycles = moments(later).mean - moments(earlier).mean;
  change.clock = change.cycles - (moments(after).mean - moments(before).mean);
  if (std::min(before.size(), after.size()) >= kMinRuns)
    change.interval = interval_of(later, earlier, method);
  return change;
}

/// Whether a verdict on times also holds in cycles.
bool holds_in_cycles(Verdict verdict, const ClockChange& change, double threshold) {
  if (std::fabs(change.clock) <= std::log(kSameClock)) return true;
  if (verdict == Verdict::slower)
    return (change.interval ? change.interval->lo : change.cycles) > threshold;
  return (change.interval ? change.interval->hi : change.cycles) < -threshold;
}

bool has_enough_runs(const Side& base, const Side& candidate, size_t least = kMinRuns) {
  return std::min(base.runs.size(), candidate.runs.size()) >= least;
}

/// The mean log ratio, the pooled variance of runs, and its factor for the ratio: 1 / n + 1 / m.
struct Change {
  double log_ratio = 0;
  Variance variance;
  double weight = 0;
};
Change change_of(const Side& base, const Side& candidate) {
  const Moments before = moments(costs(base.runs, Better::lower)),
                after = moments(costs(candidate.runs, Better::lower));
  const auto n = static_cast<double>(before.n), m = static_cast<double>(after.n);
  const double squares = (n - 1) * before.variance + (m - 1) * after.variance;
  return {after.mean - before.mean, {squares / (n + m - 2), n + m - 2}, 1 / n + 1 / m};
}

}  // namespace

Judgement judge(const Side& base, const Side& candidate, const GateOptions& options) {
  const std::vector<double> before = costs(base.runs, options.better),
                            after = costs(candidate.runs, options.better);
  const Bounds bounds{*as_log(options.threshold_pct), as_log(options.noise_floor_pct),
                      *as_log(options.min_effect_pct), options.p && !(*options.p < options.alpha)};
  const bool has_runs = has_enough_runs(base, candidate);
  const double change = moments(after).mean - moments(before).mean;
  const double sign = options.better == Better::lower ? 1 : -1;
  Judgement j;
  j.change_pct = percent(sign * change);
  double worst = change;
  Decision decision{};
  if (has_runs) {
    const Interval interval = interval_of(after, before, options.interval);
    decision = decide_by_interval(change, interval, bounds);
    worst = interval.hi;
    j.ci_lo_pct = percent(sign > 0 ? interval.lo : -interval.hi);
    j.ci_hi_pct = percent(sign > 0 ? interval.hi : -interval.lo);
  } else {
    decision = decide_by_ranges(base, candidate, change, bounds, options.better);
  }
  const bool has_changed =
      decision.verdict == Verdict::slower || decision.verdict == Verdict::faster;
  if (const auto clocks = clock_change(base, candidate, before, after, options.interval)) {
    j.cycles_change_pct = percent(clocks->cycles);
    if (has_changed && !holds_in_cycles(decision.verdict, *clocks, bounds.threshold))
      decision = {Verdict::ambiguous, "clock_change"};
  }
  j.verdict = decision.verdict;
  j.reason = decision.reason;
  j.severity = severity_of(j.verdict, worst);
  return j;
}

std::optional<double> noise_floor_pct(std::span<const Side> base, std::span<const Side> candidate) {
  std::vector<double> deviations;
  for (size_t i = 0; i < base.size(); ++i) {
    if (!has_enough_runs(base[i], candidate[i], kMinRunsOfFloor)) continue;
    const double before = moments(costs(base[i].runs, Better::lower)).variance;
    const double after = moments(costs(candidate[i].runs, Better::lower)).variance;
    deviations.push_back(std::sqrt((before + after) / 2));
  }
  if (deviations.empty()) return std::nullopt;
  return noise_floor_pct(median(deviations));
}

std::vector<std::optional<double>> change_p_values(std::span<const Side> base,
                                                   std::span<const Side> candidate, bool adjusts) {
  std::vector<Change> changes;
  std::vector<Variance> variances;
  for (size_t i = 0; i < base.size(); ++i) {
    if (!has_enough_runs(base[i], candidate[i])) continue;
    changes.push_back(change_of(base[i], candidate[i]));
    variances.push_back(changes.back().variance);
  }
  const Variance prior = prior_of(variances);
  std::vector<double> found;
  for (const Change& change : changes) {
    const Variance variance = moderated(change.variance, prior);
    const double t = change.log_ratio / std::sqrt(variance.value * change.weight);
    // Without variance, a change is certain, or there is none.
    found.push_back(std::isfinite(t) ? student_two_sided(t, variance.dof) : std::isnan(t) ? 1 : 0);
  }
  if (adjusts) found = adjust_p_values(found);
  std::vector<std::optional<double>> all(base.size());
  auto next = found.begin();
  for (size_t i = 0; i < base.size(); ++i) {
    if (has_enough_runs(base[i], candidate[i])) all[i] = *next++;
  }
  return all;
}

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view kNames[] = {"SAME", "FASTER",  "SLOWER", "AMBIGUOUS",
                                         "NEW",  "MISSING", "INVALID"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view to_string(Severity severity) {
  constexpr std::string_view kNames[] = {"none", "mild", "moderate", "severe", "improvement"};
  return kNames[static_cast<size_t>(severity)];
}

}  // namespace wide::bench
