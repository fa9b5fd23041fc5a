// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Short runs of the fake primitive, for the tests of the runner.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/run/runner.hpp"
#include "bench/timer/seconds.hpp"
#include "verify/support/fake_primitive.hpp"

namespace wide::bench {

using test::fake_case;
using test::FakePrimitive;
using Clock = std::chrono::steady_clock;

inline std::function<void()> spin_us(double microseconds) {
  return [=] {
    const auto start = Clock::now();
    while (seconds_since(start) * 1e6 < microseconds) continue;
  };
}

inline RunConfig short_config() {
  RunConfig config;
  config.regimes = {Regime::cpu};
  config.rounds = 6;
  config.min_samples = 6;
  config.max_samples = 12;
  config.warmup_s = 0;
  config.timeout_s = 5;
  return config;
}

/// Of a machine that nothing is too fast for; to measure one takes half a second.
inline Calibration given_calibration() {
  return {1e15, {{"fp32", 1e18}}, 100, 1, 20};
}

/// A plan of the fake primitive for one thread.
inline RunPlan fake_plan(const catalog::PrimitiveSpec& spec, const RunConfig& config) {
  RunPlan plan(Context::cpu({.num_threads = 1, .allocator = {}}));
  plan.config = config;
  plan.calibration = given_calibration();
  plan.baselines = {Baseline::loop};
  plan.work = {{&spec, {fake_case(3)}}};
  return plan;
}

struct Run {
  RunResult result;
  double seconds = 0;
};

inline Run run(FakePrimitive& fake, const RunConfig& config,
               const std::vector<int64_t>& members = {3}, bool verify_only = false) {
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan(Context::cpu({.num_threads = 1, .allocator = {}}));
  plan.config = config;
  plan.baselines = {Baseline::loop, Baseline::streams, Baseline::graph};
  plan.verify_only = verify_only;
  std::vector<catalog::Case> cases;
  for (const int64_t n : members) cases.push_back(fake_case(n));
  plan.work = {{&spec, cases}};
  Run outcome;
  const auto start = Clock::now();
  run_plan(plan, outcome.result);
  outcome.seconds = seconds_since(start);
  return outcome;
}

inline const RunnerResult& strategy(const CaseResult& result, const std::string& name) {
  for (const RunnerResult& runner : result.strategies) {
    if (runner.name == name) return runner;
  }
  FAIL("no strategy " << name);
  return result.strategies.front();
}

inline const Speedup& speedup(const CaseResult& result, const std::string& name) {
  for (const Speedup& speedup : result.speedups) {
    if (speedup.strategy == name) return speedup;
  }
  FAIL("no speedup of " << name);
  return result.speedups.front();
}

inline FakePrimitive fake_with(std::vector<test::FakeStrategy> strategies) {
  FakePrimitive fake;
  fake.strategies = std::move(strategies);
  for (test::FakeStrategy& s : fake.strategies) {
    if (!s.on_run) s.on_run = spin_us(200);
  }
  fake.member.on_run = spin_us(300);
  return fake;
}

}  // namespace wide::bench
