// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a page; its charts are in charts.hpp, its overall structure in page.cpp.
#pragma once

#include <string>

#include "bench/compare/compare.hpp"
#include "bench/document/result.hpp"
#include "bench/page/charts.hpp"

namespace wide::bench {

/// Crossover, threshold, wins, best and mean speedup for every op, regime and baseline.
std::string summary_table(const RunResult& result);
/// Every measurement of an op, and what was not measured, with the reason.
std::string results_table(const RunResult& result, const std::string& op);
/// Speedups of one op, strategies by N, coloured by their distance from 1.
std::string heat_table(const std::vector<CaseGroup>& groups, Regime regime, Baseline baseline);
/// What failed and what could not run, with the commands that repeat it.
std::string failures_list(const RunResult& result);
std::string reproduce_list(const RunResult& result, const std::string& op);
std::string environment_table(const RunResult& result);
std::string comparison_table(const Comparison& comparison);

std::string device_name(const RunResult& result);

}  // namespace wide::bench
