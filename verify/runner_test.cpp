// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The runner with a made-up primitive that misbehaves in every way a real one could: what is wrong
// is never ranked, what throws fails alone, and the sweep goes on.
#include "bench/runner.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <set>

#include "bench/calibrate.hpp"
#include "bench/interrupt.hpp"
#include "verify/support/fake_primitive.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using test::fake_case;
using test::FakePrimitive;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

struct Run {
  RunResult result;
  double seconds = 0;
};

Run run(FakePrimitive& fake, const RunConfig& config, const std::vector<int64_t>& members = {3},
        bool verify_only = false) {
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan(Context::cpu({.num_threads = 1}));
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
  CHECK(*s.speedup_ratio > 3);
  CHECK(r.result.calibration.mem_bw_bytes_per_s > 1e8);
  CHECK(r.result.peak_host_bytes > 1 << 20);
  REQUIRE(r.result.op_summaries.size() == 1);
  CHECK(r.result.op_summaries[0].best_strategy == "wide");
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

TEST_CASE("a wrong strategy is neither timed nor ranked") {
  FakePrimitive fake = fake_with({{"right", ""}, {"wrong", ""}});
  fake.strategies[1].factor = 2.001;
  fake.strategies[1].on_run = spin_us(1);
  const Run r = run(fake, short_config());
  const CaseResult& c = r.result.cases[0];
  CHECK(c.status == Status::verify_failed);
  CHECK(c.reason.find("wrong: member") == 0);
  const RunnerResult& wrong = strategy(c, "wrong");
  CHECK(wrong.status == Status::verify_failed);
  CHECK(wrong.verify.before == "fail");
  CHECK(wrong.verify.after == "not_run");
  CHECK(wrong.verify.worst_member >= 0);
  CHECK(wrong.verify.mismatches == 12);
  CHECK(*wrong.verify.worst_error_ratio > 1);
  CHECK(wrong.measurements.empty());
  for (const Speedup& s : c.speedups) CHECK(s.strategy == "right");
  CHECK(r.result.op_summaries[0].best_strategy == "right");
  CHECK(r.result.complete);
}

TEST_CASE("a strategy that turns wrong while it is timed is not ranked") {
  FakePrimitive fake = fake_with({{"fades", ""}});
  int calls = 0;
  fake.strategies[0].on_run = [&] {
    spin_us(200)();
    if (++calls == 5) fake.strategies[0].factor = 0;
  };
  const Run r = run(fake, short_config());
  const CaseResult& c = r.result.cases[0];
  CHECK(strategy(c, "fades").status == Status::verify_failed);
  CHECK(strategy(c, "fades").verify.before == "pass");
  CHECK(strategy(c, "fades").verify.after == "fail");
  CHECK(speedup(c, "fades").verdict == "not_comparable");
  CHECK_FALSE(speedup(c, "fades").speedup_ratio);
  CHECK(r.result.op_summaries.empty());
}

TEST_CASE("a wrong baseline is no denominator") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  fake.member.factor = std::nan("");
  const Run r = run(fake, short_config());
  const CaseResult& c = r.result.cases[0];
  CHECK(c.status == Status::verify_failed);
  CHECK(c.baselines[0].status == Status::verify_failed);
  CHECK(c.baselines[0].verify.nan_count == 12);
  CHECK_FALSE(c.baselines[0].verify.worst_error_ratio);
  CHECK(strategy(c, "wide").status == Status::ok);
  CHECK(c.speedups.empty());
}

TEST_CASE("damage is a failure, however right the numbers are") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  fake.damage = [] { return "guard band behind y was written to"; };
  const Run r = run(fake, short_config());
  CHECK(strategy(r.result.cases[0], "wide").reason == "guard band behind y was written to");
  CHECK(r.result.cases[0].status == Status::verify_failed);
}

TEST_CASE("what throws fails alone, and the sweep goes on") {
  FakePrimitive fake = fake_with({{"good", ""}, {"bad", ""}});
  const auto fail_with = [](ErrorCode code) { return [=] { throw Error(code, "planned"); }; };
  test::FakeStrategy& bad = fake.strategies[1];
  Status expected = Status::failed;
  SECTION("in prepare") {
    bad.on_prepare = fail_with(ErrorCode::invalid_argument);
  }
  SECTION("out of memory in prepare") {
    bad.on_prepare = fail_with(ErrorCode::out_of_memory);
    expected = Status::oom;
  }
  SECTION("no memory on the host") {
    bad.on_prepare = [] { throw std::bad_alloc(); };
    expected = Status::oom;
  }
  SECTION("when run") {
    bad.on_run = fail_with(ErrorCode::invalid_argument);
  }
  SECTION("a CUDA error that does not stay") {
    bad.on_run = fail_with(ErrorCode::cuda);
  }
  SECTION("no std::exception") {
    bad.on_run = [] { throw 42; };
  }
  SECTION("late, while it is timed") {
    bad.on_run = [calls = std::make_shared<int>(0)] {
      if (++*calls > 6) throw std::runtime_error("planned");
    };
  }
  const Run r = run(fake, short_config(), {2, 4});
  CHECK(r.result.complete);
  REQUIRE(r.result.cases.size() == 2);
  for (const CaseResult& c : r.result.cases) {
    CHECK(c.status == expected);
    CHECK(c.reason.find("bad: ") == 0);
    CHECK(strategy(c, "bad").status == expected);
    CHECK(strategy(c, "good").status == Status::ok);
    CHECK(speedup(c, "good").speedup_ratio);
    CHECK(strategy(c, "good").verify.after == "pass");
  }
}

TEST_CASE("a case whose operands cannot be made") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  int made = 0;
  fake.on_make = [&] {
    if (++made == 1) throw Error(ErrorCode::out_of_memory, "64 TiB");
  };
  const Run r = run(fake, short_config(), {2, 4});
  CHECK(r.result.cases[0].status == Status::oom);
  CHECK(r.result.cases[0].reason == "64 TiB");
  CHECK(r.result.cases[1].status == Status::ok);
  CHECK(r.result.complete);
}

TEST_CASE("what cannot run here is skipped with its reason") {
  FakePrimitive fake = fake_with({{"wide", ""}, {"elsewhere", "needs a GPU"}});
  SECTION("one strategy") {
    const Run r = run(fake, short_config());
    const CaseResult& c = r.result.cases[0];
    CHECK(c.status == Status::ok);
    CHECK(strategy(c, "elsewhere").status == Status::skipped);
    CHECK(strategy(c, "elsewhere").reason == "needs a GPU");
    CHECK(c.strategies[0].name == "wide");  // in the spec's order
  }
  SECTION("all strategies") {
    fake.strategies[0].unsupported = "needs two";
    const Run r = run(fake, short_config());
    CHECK(r.result.cases[0].status == Status::skipped);
    CHECK(r.result.cases[0].reason == "wide: needs two");
  }
  SECTION("the whole point") {
    fake.impossible = "12 heads do not divide 256";
    const Run r = run(fake, short_config());
    CHECK(r.result.cases[0].status == Status::skipped);
    CHECK(r.result.cases[0].reason == "12 heads do not divide 256");
    CHECK(fake.log.empty());
  }
  SECTION("the baseline") {
    fake.no_baseline = "members share weights";
    const Run r = run(fake, short_config());
    CHECK(r.result.cases[0].status == Status::ok);
    CHECK(r.result.cases[0].baselines[0].status == Status::skipped);
    CHECK(r.result.cases[0].speedups.empty());
  }
}

TEST_CASE("impossible speed is implausible, not fast") {
  FakePrimitive fake = fake_with({{"magic", ""}});
  SECTION("flops") {
    fake.cost = {1e15, 1, 1};
    const Run r = run(fake, short_config());
    CHECK(strategy(r.result.cases[0], "magic").status == Status::implausible);
    CHECK(r.result.cases[0].status == Status::implausible);
    CHECK(speedup(r.result.cases[0], "magic").verdict == "not_comparable");
  }
  SECTION("bytes count only where they outgrow the cache") {
    fake.cost = {1, 1e12, 1};
    CHECK(run(fake, short_config()).result.cases[0].status == Status::ok);
    if (Context::cpu().info().last_level_cache_bytes == 0) SKIP("the cache's size is unknown");
    fake.footprint_bytes = int64_t{1} << 40;
    CHECK(run(fake, short_config()).result.cases[0].status == Status::implausible);
  }
}

TEST_CASE("verification alone times nothing") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const Run r = run(fake, short_config(), {2, 4}, true);
  CHECK(r.result.cases[1].status == Status::ok);
  CHECK(strategy(r.result.cases[1], "wide").verify.before == "pass");
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
    CHECK(slow.stats.n >= 3);
    CHECK(slow.samples_round.back() >= 2);
    CHECK(speedup(c, "slow").speedup_ratio);
  }
  SECTION("three rounds are taken even without one") {
    fake.strategies[0].on_run = spin_us(30'000);
    config.budget_s = 0.01;
    const Run tight = run(fake, config, {1});
    const Measurement& m = strategy(tight.result.cases[0], "slow").measurements.at(0);
    CHECK(m.stats.n == 3);
    CHECK(m.few_samples);
    CHECK(speedup(tight.result.cases[0], "slow").verdict == "ambiguous");
    CHECK(tight.seconds < 1.5);
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
  std::signal(SIGINT, SIG_DFL);
  CHECK_FALSE(r.result.complete);
  REQUIRE(r.result.cases.size() == 1);
  const Measurement& m = strategy(r.result.cases[0], "wide").measurements.at(0);
  CHECK(m.stop_reason == "interrupted");
  CHECK(m.stats.n > 0);
  CHECK(r.seconds < 3);
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
  CHECK(reproduce_command(fake_case(4)) == "wbench run --op fake --n 4 --dtype fp32");
}

}  // namespace
}  // namespace wide::bench
