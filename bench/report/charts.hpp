// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which charts results have. Pure: what is missing or was wrong has no point, and a chart of
// nothing is_empty().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"
#include "bench/history/history.hpp"
#include "bench/report/chart.hpp"
#include "bench/result.hpp"

namespace wide::bench {

/// One colour and marker for a name all over a page.
class Palette {
 public:
  int of(const std::string& name);

 private:
  std::map<std::string, int> colors_;
};

/// Cases of an op that differ in n alone, ascending in it.
struct CaseGroup {
  std::string op, rest;  ///< the other axes, those of all groups left out: "batch=16 d=256"
  std::vector<const CaseResult*> cases;
};
std::vector<CaseGroup> groups_of(const RunResult& result, const std::string& op);
int64_t members_of(const CaseResult& point);

/// As a strategy's name, in parentheses for a baseline.
std::string runner_name(const std::string& name, bool is_baseline);

/// Speedups against N with their intervals; 1 is where nothing is gained.
Chart speedup_chart(const CaseGroup& group, Regime regime, Baseline baseline, Palette& palette);
/// Times of strategies and baselines against N: where they cross is where N is worth it.
Chart time_chart(const CaseGroup& group, Regime regime, std::optional<int64_t> crossover,
                 Palette& palette);
/// Rates against intensity, under the ceilings that were measured for this dtype.
Chart roofline_chart(const RunResult& result, Regime regime, const std::string& dtype,
                     Palette& palette);
/// Samples of all runners of a case.
Chart distribution_chart(const CaseResult& point, Regime regime, Palette& palette);
/// The largest changes, at most so many.
inline constexpr size_t kMostComparedRows = 40;
Chart comparison_chart(const Comparison& comparison);
/// Series of one case, regime and device over runs, each with the band of its noise; empty where
/// none has two runs.
Chart history_chart(const std::vector<const HistorySeries*>& series, Palette& palette);

}  // namespace wide::bench
