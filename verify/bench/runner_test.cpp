// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a run does when all goes well: order of blocks, budget, interruption, identity of cases.
#include "bench/run/runner.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <limits>
#include <numeric>
#include <set>

#include "bench/document/case_id.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/contender.hpp"
#include "verify/bench/runner_case.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;

TEST_CASE("a case that goes well") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const Run r = run(fake, short_config());
  CHECK(r.result.complete);
  REQUIRE(r.result.cases.size() == 1);
  const CaseResult& c = r.result.cases[0];
  CHECK(c.status == Status::ok);
  const RunnerResult& wide = strategy(c, "wide");
  CHECK(wide.verify.before == "pass");
  CHECK(wide.verify.after == "pass");
  CHECK(wide.verify.elements_compared == 12);
  CHECK(wide.verify.bitwise_stable == std::optional(true));
  REQUIRE(wide.measurements.size() == 1);
  const Measurement& m = wide.measurements[0];
  CHECK(m.timer == "host");
  CHECK(m.stop_reason == "max_samples");
  CHECK(m.stats.n == 12);
  CHECK(m.few_samples);
  CHECK(m.samples_round.size() == m.samples_ns.size());
  CHECK(m.stats.median_ns >= 200e3);
  REQUIRE(c.baselines.size() == 1);  // the CPU has neither streams nor graphs
  CHECK(c.baselines[0].name == "loop");
  CHECK(c.baselines[0].measurements[0].stats.median_ns >= 900e3);
  const Speedup& s = speedup(c, "wide");
  CHECK(s.pairs >= 2);
  // No bound on the ratio itself: a machine that is busy with something else makes any ratio.
  CHECK(*s.ci_lo <= *s.speedup_ratio);
  CHECK(*s.speedup_ratio <= *s.ci_hi);
  CHECK(r.result.calibration.mem_bw_bytes_per_s > 1e8);
  CHECK(r.result.peak_host_bytes > 1 << 20);
  REQUIRE(r.result.op_summaries.size() == 1);
  CHECK(r.result.op_summaries[0].best_strategy == "wide");
}

TEST_CASE("every check is told when it has ended, and time is reserved for those after timing") {
  FakePrimitive fake = fake_with({{"wide", ""}, {"other", ""}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  std::vector<std::string> checked;
  plan.on_check_ended = [&](const std::string& name) { checked.push_back(name); };
  RunResult result;
  run_plan(plan, result);
  const std::vector<std::string> once{"wide", "other", "loop"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  CHECK(checked == twice);
  CHECK(num_checks_after({Regime::stream}) == 1);
  CHECK(num_checks_after({Regime::stream, Regime::graph}) == 2);
  CHECK(num_checks_after({Regime::graph, Regime::cold}) == 3);
}

TEST_CASE("samples say in which order they were taken, when, and which are outliers") {
  FakePrimitive fake = fake_with({{"a", ""}, {"b", ""}});
  RunConfig config = short_config();
  config.max_samples = 600;
  config.rounds = 4;
  config.min_samples = 4;
  config.target_ci_pct = 100;
  const Run r = run(fake, config);
  struct Sample {
    int64_t order = 0, round = 0;
    double t_rel_s = 0, length_s = 0;
    size_t runner = 0;
  };
  std::vector<Sample> samples;
  std::vector<RunnerResult> runners = r.result.cases[0].strategies;
  runners.push_back(r.result.cases[0].baselines[0]);
  for (size_t k = 0; k < runners.size(); ++k) {
    const Measurement& m = runners[k].measurements.at(0);
    REQUIRE(m.samples_order.size() == m.samples_ns.size());
    REQUIRE(m.samples_t_rel_s.size() == m.samples_ns.size());
    REQUIRE(m.samples_flags.size() == m.samples_ns.size());
    for (size_t i = 0; i < m.samples_ns.size(); ++i) {
      samples.push_back({m.samples_order[i], m.samples_round[i], m.samples_t_rel_s[i],
                         1e-9 * m.samples_ns[i] * static_cast<double>(m.iters_per_sample), k});
    }
    const auto flagged = [&](int64_t flag) {
      return std::count_if(m.samples_flags.begin(), m.samples_flags.end(),
                           [&](int64_t flags) { return (flags & flag) != 0; });
    };
    const Outliers& o = m.stats.outliers;
    CHECK(flagged(kMildOutlier) == o.mild_low + o.mild_high);
    CHECK(flagged(kSevereOutlier) == o.severe_low + o.severe_high);
    CHECK(flagged(kThrottledSample) == 0);
  }
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.order < b.order; });
  for (size_t i = 0; i < samples.size(); ++i) {
    CHECK(samples[i].order == static_cast<int64_t>(i));  // each once, none discarded
    if (i == 0) continue;
    // One behind the other, and a visit to each runner in each round.
    CHECK(samples[i].t_rel_s >= samples[i - 1].t_rel_s + samples[i - 1].length_s);
    CHECK(samples[i].round >= samples[i - 1].round);
  }
  std::vector<size_t> visits;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].runner != samples[i - 1].runner ||
        samples[i].round != samples[i - 1].round)
      visits.push_back(samples[i].runner);
  }
  REQUIRE(visits.size() == 4 * runners.size());
  for (size_t k = 0; k < 2 * runners.size(); ++k)
    CHECK(visits[2 * runners.size() - 1 - k] == visits[k]);  // ABBA
}

TEST_CASE("blocks alternate forward and backward") {
  FakePrimitive fake = fake_with({{"a", ""}, {"b", ""}, {"c", ""}});
  RunConfig config = short_config();
  config.max_samples = 600;
  config.rounds = 4;
  config.min_samples = 4;
  config.target_ci_pct = 100;
  config.verify = "off";
  run(fake, config);
  // One entry per block; members' names are those of the baseline.
  std::vector<std::string> blocks;
  for (const std::string& name : fake.log) {
    if (blocks.empty() || blocks.back() != name) blocks.push_back(name);
  }
  // Warm-up and the making of samplers go in order of declaration, then come four rounds, in which
  // the last of a round is the first of the next.
  const std::set<std::string> everyone{"a", "b", "c", "member"};
  REQUIRE(blocks.size() == 8 + 4 + 3 * 3);
  const std::vector<std::string> first(blocks.begin() + 8, blocks.begin() + 12);
  CHECK(std::set<std::string>(first.begin(), first.end()) == everyone);
  const std::vector<std::string> second(blocks.begin() + 11, blocks.begin() + 15);
  CHECK(std::equal(first.rbegin(), first.rend(), second.begin()));
  const std::vector<std::string> third(blocks.begin() + 14, blocks.begin() + 18);
  CHECK(third == first);
}

TEST_CASE("verification alone times nothing") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const Run r = run(fake, short_config(), {2, 4}, true);
  CHECK(r.result.cases[1].status == Status::ok);
  CHECK(strategy(r.result.cases[1], "wide").verify.before == "pass");
  CHECK_FALSE(strategy(r.result.cases[1], "wide").verify.bitwise_stable);  // of one call
  CHECK(strategy(r.result.cases[1], "wide").measurements.empty());
  CHECK(r.result.calibration.mem_bw_bytes_per_s == 0);
  const std::vector<std::string> expected{"poison", "wide", "poison", "member", "member"};
  CHECK(std::equal(expected.begin(), expected.end(), fake.log.begin()));
}

TEST_CASE("a budget takes samples, not cases") {
  FakePrimitive fake = fake_with({{"slow", ""}, {"wide", ""}});
  fake.strategies[0].on_run = spin_us(10'000);
  RunConfig config;
  config.regimes = {Regime::cpu};
  config.target_ci_pct = 0;
  config.budget_s = 3;
  const Run r = run(fake, config, {1, 2, 3, 4});
  CHECK(r.seconds < 3.3);
  CHECK(r.seconds > 1.5);  // and it is used
  REQUIRE(r.result.cases.size() == 4);
  for (const CaseResult& c : r.result.cases) {
    CHECK(c.status == Status::ok);
    const Measurement& slow = strategy(c, "slow").measurements.at(0);
    CHECK(slow.stop_reason == "timeout");
    CHECK(slow.stats.n >= 4);
    CHECK(slow.warmup_s.value() > 0.02);
    CHECK(slow.samples_round.back() >= 3);
    CHECK(speedup(c, "slow").speedup_ratio);
  }
  SECTION("four rounds are taken even without one") {
    fake.strategies[0].on_run = spin_us(30'000);
    config.budget_s = 0.01;
    const Run tight = run(fake, config, {1});
    const Measurement& m = strategy(tight.result.cases[0], "slow").measurements.at(0);
    CHECK(m.stats.n == 4);
    CHECK(m.few_samples);
    CHECK(m.warmup_s.value() < 0.1);
    CHECK(m.stats.doubts.value().back() == "short_warmup");
    CHECK(speedup(tight.result.cases[0], "slow").verdict == "ambiguous");
    CHECK(tight.seconds < 1.5);
  }
}

TEST_CASE("samples add up to the least time before a rule may end them") {
  FakePrimitive fake = fake_with({{"quick", ""}, {"wide", ""}});
  fake.strategies[0].on_run = spin_us(20);
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.config.max_samples = 100'000;
  plan.config.stop = "count";
  const auto least_s = [&] {
    RunResult result;
    run_plan(plan, result);
    double least = 1e9;
    for (const char* name : {"quick", "wide"}) {
      const Measurement& m = strategy(result.cases.at(0), name).measurements.at(0);
      CHECK(m.stop_reason == "count");
      const double ns = std::accumulate(m.samples_ns.begin(), m.samples_ns.end(), 0.0);
      least = std::min(least, 1e-9 * ns * static_cast<double>(m.iters_per_sample));
    }
    return least;
  };
  CHECK(least_s() < 0.05);
  plan.config.min_time_s = 0.05;
  CHECK(least_s() >= 0.05);
}

TEST_CASE("pauses lie between cases, and are of the budget but of no case's share") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.work.front().second = {fake_case(2), fake_case(3), fake_case(4)};
  plan.config.cooldown_s = 0.25;
  const auto seconds = [&] {
    RunResult result;
    const auto start = Clock::now();
    run_plan(plan, result);
    CHECK(result.complete);
    return seconds_since(start);
  };
  const double pauses_s = 0.5;
  CHECK(seconds() > pauses_s);
  plan.config.budget_s = 1;
  plan.config.target_ci_pct = 0;
  plan.config.max_samples = 100'000;
  const double with_budget = seconds();
  CHECK(with_budget > pauses_s);
  CHECK(with_budget < 1.1);
  plan.verify_only = true;
  CHECK(seconds() < pauses_s);  // nothing is timed, nothing heats
}

TEST_CASE("a sweep may end with the first case in error") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.verify_only = true;
  plan.work.front().second = {fake_case(2), fake_case(3), fake_case(4)};
  int calls = 0;
  fake.strategies[0].on_run = [&] {
    if (++calls == 2) throw Error(ErrorCode::io, "a planted fault");
  };
  for (const bool exits : {false, true}) {
    calls = 0;
    plan.exits_on_error = exits;
    RunResult result;
    run_plan(plan, result);
    CHECK(result.cases.size() == (exits ? 2 : 3));
    CHECK(result.cases.at(1).status == Status::failed);
    CHECK(result.complete == !exits);
  }
}

TEST_CASE("an interrupt ends the sweep and keeps what there is") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  int calls = 0;
  install_interrupt_handler();
  fake.strategies[0].on_run = [&] {
    spin_us(200)();
    if (++calls == 12) std::raise(SIGINT);
  };
  RunConfig config = short_config();
  config.max_samples = 100'000;
  config.target_ci_pct = 0;
  const Run r = run(fake, config, {2, 4, 8});
  set_interrupted(false);
  CHECK(std::signal(SIGINT, SIG_DFL) == SIG_DFL);  // a second one would have ended the process
  CHECK_FALSE(r.result.complete);
  REQUIRE(r.result.cases.size() == 1);
  const Measurement& m = strategy(r.result.cases[0], "wide").measurements.at(0);
  CHECK(m.stop_reason == "interrupted");
  CHECK(m.stats.n > 0);
  CHECK(r.seconds < 3);
}

TEST_CASE("a call without outputs is no work, of any primitive") {
  int64_t num_empty = 0;
  const std::vector<std::pair<std::string, catalog::AxisValue>> none{{"batch", int64_t{0}}};
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    const auto has_batch = [](const catalog::AxisInfo& axis) {
      return axis.name == "batch" && axis.min == 0;
    };
    if (std::none_of(spec->axes.begin(), spec->axes.end(), has_batch)) continue;
    const catalog::Case point = catalog::make_case(*spec, none);
    if (!spec->impossible_reason(point).empty()) continue;
    INFO(point.op() << " " << point.to_string());
    RunPlan plan(Context::cpu({.num_threads = 1, .allocator = {}}));
    plan.verify_only = true;
    plan.work = {{spec, {point}}};
    RunResult result;
    run_plan(plan, result);
    const CaseResult& c = result.cases.at(0);
    CHECK(c.status == Status::ok);
    const bool is_empty = c.strategies.at(0).verify.elements == 0;
    CHECK((c.cost.flops == 0 || !is_empty));
    CHECK((c.cost.bytes() == 0) == is_empty);
    num_empty += is_empty ? 1 : 0;
  }
  CHECK(num_empty >= 10);
}

TEST_CASE("a CPU's ceilings are the highest of windows spread over the sweep") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.calibration.reset();
  std::vector<double> bandwidths;  // of the windows, in parts of the given one
  int measured = 0;
  double measuring_us = 0;
  plan.config.l2_factor = 3;
  plan.measure_ceilings = [&](double l2_factor) {
    CHECK(l2_factor == 3);
    Calibration ceilings = given_calibration();
    ceilings.mem_bw_bytes_per_s *= bandwidths.at(static_cast<size_t>(measured++));
    spin_us(measuring_us)();
    return ceilings;
  };
  // The codes that a run's checks have; `highest` and `judged` say what its ceiling is in the end,
  // and what its last case was judged by.
  double highest = 0, judged = 0;
  const auto checks_of = [&](const RunPlan& changed, const std::vector<double>& windows) {
    measured = 0;
    bandwidths = windows;
    RunResult result;
    run_plan(changed, result);
    const double given = given_calibration().mem_bw_bytes_per_s;
    highest = result.calibration.mem_bw_bytes_per_s / given;
    const CaseResult& last = result.cases.back();
    const double bytes_ns = last.floor_ns - given_calibration().empty_launch_ns;
    judged = last.cost.bytes() / bytes_ns * 1e9 / given;
    CHECK(result.environment_checks.size() < 2);
    return result.environment_checks.empty() ? "" : result.environment_checks[0].code;
  };
  CHECK(checks_of(plan, {1, 1, 1}) == "");
  CHECK((measured == 3 && highest == 1));
  CHECK(checks_of(plan, {0.5, 1, 0.95}) == "");
  CHECK((highest == 1 && judged == Approx(1)));
  CHECK(checks_of(plan, {1, 0.5, 1}) == "");
  CHECK(judged == Approx(1));
  CHECK(checks_of(plan, {0.5, 0.5, 1}) == "E_CEILINGS_MOVED");
  CHECK((highest == 1 && judged == Approx(0.5)));
  CHECK(checks_of(plan, {1, 1, 0.5}) == "E_CEILINGS_MOVED");

  RunPlan changed = plan;
  changed.work[0].second = {fake_case(3), fake_case(2), fake_case(4)};
  CHECK(checks_of(changed, {1, 1, 1}) == "");  // it is too short for more
  changed = plan;
  changed.ceilings_hold_s = std::numeric_limits<double>::infinity();
  CHECK(checks_of(changed, {1}) == "");
  changed = plan;
  changed.config.budget_s = 0.09;
  measuring_us = 0.05e6;  // not twice as long
  CHECK(checks_of(changed, {1}) == "");
  measuring_us = 0;
  changed = plan;
  changed.calibration = given_calibration();  // at another time
  CHECK(checks_of(changed, {}) == "");
  changed = plan;
  fake.strategies[0].on_run = [] { set_interrupted(true); };
  const catalog::PrimitiveSpec interrupted = fake.spec();
  changed.work = {{&interrupted, {fake_case(3)}}};
  CHECK(checks_of(changed, {1, 1, 0.5}) == "E_CEILINGS_MOVED");
  set_interrupted(false);
}

TEST_CASE("a case's id and command") {
  FakePrimitive fake;
  const catalog::PrimitiveSpec spec = fake.spec();
  const std::string id = case_id(spec, fake_case(4));
  CHECK(id.size() == 16);
  CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(id != case_id(spec, fake_case(8)));
  // The order of the axes and whether they were named make no difference; the version does.
  const catalog::Case swapped("fake", {{"dtype", std::string("fp32"), true}, {"n", int64_t{4}}});
  CHECK(id == case_id(spec, swapped));
  catalog::PrimitiveSpec later = spec;
  later.version = 2;
  CHECK(id != case_id(later, fake_case(4)));
  // FNV-1a of "op=fake;version=1;dtype=fp32;n=4;", worked out by another program.
  CHECK(id == "3419dc941a5814a3");
  CHECK(reproduce_command(fake_case(4), "run") == "wbench run --op fake --n 4 --dtype fp32");
}

}  // namespace
}  // namespace wide::bench
