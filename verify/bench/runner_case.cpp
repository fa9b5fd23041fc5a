// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/bench/runner_case.hpp"

#include <catch2/catch_test_macros.hpp>
#include <utility>

namespace wide::bench {

std::function<void()> spin_us(double microseconds) {
  return [=] {
    const auto start = Clock::now();
    while (seconds_since(start) * 1e6 < microseconds) continue;
  };
}

RunConfig short_config() {
  RunConfig config;
  config.regimes = {Regime::cpu};
  config.rounds = 6;
  config.min_samples = 6;
  config.max_samples = 12;
  config.warmup_s = 0;
  config.timeout_s = 5;
  return config;
}

Calibration given_calibration() {
  return {1e15, {{"fp32", 1e18}}, 100, 1, 20};
}

RunPlan fake_plan(const catalog::PrimitiveSpec& spec, const RunConfig& config) {
  RunPlan plan(Context::cpu({.num_threads = 1, .allocator = {}}));
  plan.config = config;
  plan.calibration = given_calibration();
  plan.baselines = {Baseline::loop};
  plan.work = {{&spec, {fake_case(3)}}};
  return plan;
}

Run run(FakePrimitive& fake, const RunConfig& config, const std::vector<int64_t>& members,
        bool verify_only) {
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

const RunnerResult& strategy(const CaseResult& result, const std::string& name) {
  for (const RunnerResult& runner : result.strategies) {
    if (runner.name == name) return runner;
  }
  FAIL("no strategy " << name);
  return result.strategies.front();
}

const Speedup& speedup(const CaseResult& result, const std::string& name) {
  for (const Speedup& speedup : result.speedups) {
    if (speedup.strategy == name) return speedup;
  }
  FAIL("no speedup of " << name);
  return result.speedups.front();
}

FakePrimitive fake_with(std::vector<test::FakeStrategy> strategies) {
  FakePrimitive fake;
  fake.strategies = std::move(strategies);
  for (test::FakeStrategy& s : fake.strategies) {
    if (!s.on_run) s.on_run = spin_us(200);
  }
  fake.member.on_run = spin_us(300);
  return fake;
}

}  // namespace wide::bench
