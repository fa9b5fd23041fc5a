// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Runs made by hand, for the tests of comparisons.
#pragma once

#include <vector>

#include "bench/compare/compare.hpp"
#include "verify/bench/sample_result.hpp"

namespace wide::bench {

/// One run: a case for every time, of strategy "simt", the run's own luck in `factor`.
RunResult run_of(const std::vector<double>& times, double factor = 1);

std::vector<RunResult> runs_of(const std::vector<double>& times, int count = 5);

CompareOptions options_of(const char* metric = "time_ns");

/// Of the first cell of run_of(), whose runs hardly differ.
HistorySeries quiet_history();

}  // namespace wide::bench
