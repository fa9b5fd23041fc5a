// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which charts results have. Pure: missing or wrong values have no point, and a chart without
// points is_empty().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"
#include "bench/document/result.hpp"
#include "bench/history/history.hpp"
#include "bench/page/chart.hpp"

namespace wide::bench {

/// Assigns each name one colour and marker throughout a page.
class Palette {
 public:
  int of(const std::string& name);

 private:
  std::map<std::string, int> colors_;
};

/// Cases of an op that differ only in n, in ascending order of n.
struct CaseGroup {
  std::string op, rest;  ///< the other axes, those of all groups left out: "batch=16 d=256"
  std::vector<const CaseResult*> cases;
};
std::vector<CaseGroup> groups_of(const RunResult& result, const std::string& op);
int64_t members_of(const CaseResult& point);

/// The strategy's name, or the baseline's in parentheses.
std::string runner_name(const std::string& name, bool is_baseline);

/// Speedups against N with their intervals; 1 means no gain.
Chart speedup_chart(const CaseGroup& group, Regime regime, Baseline baseline, Palette& palette);
/// Times of strategies and baselines against N: beyond their intersection N members pay off.
Chart time_chart(const CaseGroup& group, Regime regime, std::optional<int64_t> crossover,
                 Palette& palette);
/// Rates against intensity, under the ceilings that were measured for this dtype.
Chart roofline_chart(const RunResult& result, Regime regime, const std::string& dtype,
                     Palette& palette);
/// Samples of all runners of a case.
Chart distribution_chart(const CaseResult& point, Regime regime, Palette& palette);
/// The largest changes, at most this many.
inline constexpr size_t kMaxComparedRows = 40;
Chart comparison_chart(const Comparison& comparison);
/// Series of one case, regime and device over runs, each with its noise band; empty if
/// none has two runs.
Chart history_chart(const std::vector<const HistorySeries*>& series, Palette& palette);

}  // namespace wide::bench
