// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A real primitive through the whole runner on a GPU: all its regimes, all three baselines.
#include <catch2/catch_test_macros.hpp>

#include "bench/run/failure.hpp"
#include "bench/run/runner.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/simulation.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

const Measurement* measured(const RunnerResult& runner, Regime regime) {
  for (const Measurement& m : runner.measurements) {
    if (m.regime == regime && m.stats.n >= 3 && m.stats.median_ns > 0) return &m;
  }
  return nullptr;
}

bool has(const RunnerResult& runner, Regime regime) {
  return measured(runner, regime) != nullptr;
}

/// A simulator takes minutes to read an L2's 60 MB, unless it is asked for a smaller one.
bool can_be_cold(const Context& context) {
  return !test::wants_small_cases() || context.info().last_level_cache_bytes <= 1 << 16;
}

TEST_CASE("a primitive in all regimes against all baselines") {
  const Context context = test::require_cuda();
  const bool is_small = test::wants_small_cases(), is_cold = can_be_cold(context);
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("layernorm");
  const std::vector<std::pair<std::string, catalog::AxisValue>> axes{
      {"n", int64_t{10}},
      {"batch", int64_t{1}},
      {"seq", is_small ? int64_t{1} : int64_t{64}},
      {"d", is_small ? int64_t{8} : int64_t{256}}};
  RunPlan plan(context);
  plan.config.regimes = {Regime::stream, Regime::graph};
  if (is_cold) plan.config.regimes.push_back(Regime::cold);
  plan.config.rounds = 6;
  plan.config.min_samples = 6;
  plan.config.max_samples = is_small ? 6 : 60;
  plan.config.warmup_s = 0;
  if (is_small) {
    plan.config.budget_s = 0.5;
    plan.calibration =
        Calibration{1e12, {}, 1000, 32, 700};  // a simulator reads 256 MB for minutes
  }
  plan.baselines = {Baseline::loop, Baseline::streams, Baseline::graph};
  plan.work = {{&spec, {catalog::make_case(spec, axes)}}};
  RunResult result;
  run_plan(plan, result);
  REQUIRE(result.cases.size() == 1);
  const CaseResult& c = result.cases[0];
  INFO(c.reason);
  // Times of a simulated GPU mean nothing, so neither does their plausibility.
  CHECK((c.status == Status::ok || (is_small && c.status == Status::implausible)));
  REQUIRE(c.baselines.size() == 3);
  size_t num_measured = 0;
  for (const RunnerResult& strategy : c.strategies) {
    INFO(strategy.name << ": " << strategy.reason);
    if (strategy.status == Status::skipped) continue;
    ++num_measured;
    CHECK(strategy.verify.after == "pass");
    CHECK(has(strategy, Regime::stream));
    CHECK(has(strategy, Regime::graph));
    CHECK(has(strategy, Regime::cold) == is_cold);
    if (const Measurement* cold = measured(strategy, Regime::cold)) {
      CHECK(cold->cache == Cache::flush);
      CHECK(cold->timer == "graph");  // as a call this short is timed
      CHECK(cold->buffers_rotated > 1);
      CHECK(cold->buffers_rotated == cold->iters_per_sample);
    }
  }
  for (const RunnerResult& baseline : c.baselines) {
    INFO(baseline.name << ": " << baseline.reason);
    CHECK(baseline.verify.after == "pass");
    CHECK(baseline.strategy == "sequential");  // what one member's call is
    CHECK(has(baseline, Regime::stream) == (baseline.name != "graph"));
    CHECK(has(baseline, Regime::graph) == (baseline.name != "loop"));
    CHECK(has(baseline, Regime::cold) == (baseline.name == "loop" && is_cold));
  }
  const RunnerResult &loop = c.baselines[0], &streams = c.baselines[1], &graph = c.baselines[2];
  const auto is_told = [](const RunnerResult& r) {
    return r.status == Status::ok && !r.measurements.at(0).below_resolution;
  };
  const auto overhead = [](const RunnerResult& r) {
    return r.measurements.at(0).launch_overhead_ns_per_launch;
  };
  CHECK(overhead(loop).has_value() == (loop.launches_per_call && is_told(loop) && is_told(graph)));
  CHECK((!streams.launches_per_call || overhead(streams).has_value() == is_told(streams)));
  CHECK_FALSE(overhead(graph));
  CHECK(c.speedups.size() == (is_cold ? 5 : 4) * num_measured);
  CHECK(num_measured >= 2);  // sequential and wide
  CHECK(result.complete);
}

TEST_CASE("a lost device is recognised by whichever library reports it") {
  test::require_simulation();
  const Context context = test::require_cuda();
  constexpr int kLaunchFailure = 719;  // cudaErrorLaunchFailure: sticky
  for (const ErrorCode code : {ErrorCode::cuda, ErrorCode::cublas, ErrorCode::cudnn}) {
    INFO(error_code_name(code));
    const auto failure = [&] {
      try {
        throw Error(code, "planned");
      } catch (...) {
        return current_failure(context);
      }
    };
    CHECK_FALSE(failure().is_device_lost);
    test::Simulation::fail_at(1, kLaunchFailure, true);
    CHECK_THROWS_AS(OwnedStream(context), Error);
    CHECK(failure().is_device_lost);
    CHECK(failure().status == Status::failed);
    test::Simulation::reset_device();
    test::Simulation::clear_findings();
  }
}

}  // namespace
}  // namespace wide::bench
