// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/bench/compare_case.hpp"

namespace wide::bench {

RunResult run_of(const std::vector<double>& times, double factor) {
  RunResult run = sample_result();
  run.complete = true;
  run.cases.clear();
  for (size_t i = 0; i < times.size(); ++i) {
    CaseResult c = sample_case("linear", static_cast<int64_t>(4 << i), "fp16");
    c.case_id = "0123456789abcde" + std::string(1, static_cast<char>('0' + i));
    RunnerResult strategy = sample_runner("simt", times[i] * factor, 0);
    Statistics& s = strategy.measurements[0].stats;
    s.min_ns = 0.99 * s.median_ns;
    s.q3_ns = 1.01 * s.median_ns;
    strategy.measurements[0].flops_per_s = 1e15 / s.median_ns;
    c.strategies = {strategy};
    c.speedups.clear();
    run.cases.push_back(c);
  }
  return run;
}

std::vector<RunResult> runs_of(const std::vector<double>& times, int count) {
  std::vector<RunResult> runs;
  for (int i = 0; i < count; ++i) {
    runs.push_back(run_of(times, 1 + 0.001 * (i - count / 2)));
    runs.back().id += "-" + std::to_string(i);
  }
  return runs;
}

CompareOptions options_of(const char* metric) {
  CompareOptions options;
  options.metric = &find_measured_metric(metric);
  return options;
}

HistorySeries quiet_history() {
  const RunResult run = run_of({1000});
  HistorySeries s;
  s.last.case_id = run.cases[0].case_id;
  s.last.runner = "simt", s.last.regime = "stream", s.last.device = history_device(run);
  s.medians_ns = {1000, 1001, 1000};
  s.codes.assign(3, "c0ffee");
  return s;
}

}  // namespace wide::bench
