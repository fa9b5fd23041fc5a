// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/suite/outcome.hpp"

#include <algorithm>
#include <cmath>

#include "bench/process/exit_code.hpp"

namespace wide::bench {

void SpeedupStatistics::add(double ratio) {
  add(SpeedupStatistics{1, std::log(ratio), ratio, ratio});
}

void SpeedupStatistics::add(const SpeedupStatistics& other) {
  if (other.cases == 0) return;
  least = cases == 0 ? other.least : std::min(least, other.least);
  largest = cases == 0 ? other.largest : std::max(largest, other.largest);
  cases += other.cases;
  log_sum += other.log_sum;
}

double SpeedupStatistics::geomean() const {
  return std::exp(log_sum / static_cast<double>(cases));
}

Speedups speedups_of(const RunResult& result) {
  Speedups all;
  for (const CaseResult& c : result.cases) {
    std::map<std::pair<Regime, Baseline>, double> best;
    for (const Speedup& s : c.speedups) {
      double& largest = best[{s.regime, s.baseline}];
      largest = std::max(largest, s.speedup_ratio.value_or(0));
    }
    for (const auto& [key, ratio] : best) {
      if (ratio > 0) all[key].add(ratio);
    }
  }
  return all;
}

EntryOutcome outcome_of(const SuiteEntry& entry, const RunResult& result, int code,
                        bool is_strict) {
  EntryOutcome o;
  o.entry = entry;
  o.exit_code = code;
  o.has_run = true;
  o.duration_s = result.duration_s;
  o.run_id = result.id;
  o.impossible = result.impossible_cases;
  for (const CaseResult& c : result.cases) ++o.cases[c.status];
  o.speedups = speedups_of(result);
  for (const Threshold& threshold : entry.thresholds) {
    o.thresholds.push_back(hold(threshold, result));
    const Reach reach = o.thresholds.back().reach;
    if (reach == Reach::missed) o.exit_code = worse_code(o.exit_code, kRegression);
    if (reach == Reach::undecided && is_strict)
      o.exit_code = worse_code(o.exit_code, kInconclusive);
  }
  return o;
}

int SuiteOutcome::exit_code() const {
  int code = complete ? kSuccess : kInterrupted;
  for (const EntryOutcome& entry : entries) code = worse_code(code, entry.exit_code);
  return code;
}

}  // namespace wide::bench
