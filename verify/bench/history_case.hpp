// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Small runs, for the tests of the history.
#pragma once

#include <string>

#include "bench/document/case_id.hpp"
#include "bench/document/result_json.hpp"
#include "bench/history/history.hpp"
#include "bench/run/runner.hpp"
#include "bench/statistics/statistics.hpp"

namespace wide::bench {

/// A run of linear on the CPU with one case and one strategy.
inline RunResult run_of(int number, double median_ns = 100) {
  RunResult result;
  result.id = "run-" + std::to_string(number);
  result.started = "2026-01-01T00:00:" + std::to_string(10 + number) + "Z";
  result.complete = true;
  result.git_sha = std::string(39, 'a') + std::to_string(number % 10);
  result.devices = {{Context::cpu().info(), "", ""}};
  CaseResult& c = result.cases.emplace_back();
  c.point = catalog::Case("linear", {{"n", int64_t{4}, false}});
  c.case_id = case_id({}, c.point);
  RunnerResult& r = c.strategies.emplace_back();
  r.name = "wide";
  Measurement& m = r.measurements.emplace_back();
  m.regime = Regime::cpu;
  m.samples_ns = {median_ns};
  m.samples_round = {0};
  m.stats = describe_samples(m.samples_ns, m.samples_round);
  return result;
}

inline HistoryRecord record(int number, double median_ns = 100) {
  const RunResult result = run_of(number, median_ns);
  return record_of(result, to_json(result).dump(1));
}

}  // namespace wide::bench
