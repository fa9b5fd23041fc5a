// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result made by hand, of a GPU that is not at hand: two ops, two regimes, three baselines, and
// of every status one. For the tests of files and tables.
#pragma once

#include <cstdint>
#include <string>

#include "bench/document/result.hpp"

namespace wide::bench {

Measurement sample_measurement(Regime regime, double median_ns);

RunnerResult sample_runner(const std::string& name, double stream_ns, double graph_ns);

/// What a launch on the simulated GPU leaves, with numbers that a table's factors can be told by:
/// sectors for 1.25 times the bytes that the case's operands have, a quarter of them read again.
LaunchCounters sample_launch();

Speedup sample_speedup(const std::string& strategy, Baseline baseline, double ratio);

catalog::Case sample_point(const std::string& op, int64_t n, const std::string& dtype);

CaseResult sample_case(const std::string& op, int64_t n, const std::string& dtype);

/// Of every status a strategy, with reasons that are long, quoted, or hold what breaks formats.
CaseResult sample_bad_case();

RunResult sample_result();

/// The same with three samples each, for tests that read it thousands of times.
RunResult short_sample_result();

/// Samples with the statistics' minimum, quartiles and maximum.
void fit_samples(Measurement& m);

/// Case ids, the order of samples, rates and speedups as their sources have them, of which a result
/// made by hand has its own: files whose numbers contradict one another are refused.
void make_consistent(CaseResult& c);

RunResult consistent(RunResult result);

}  // namespace wide::bench
