// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The runner with a primitive that misbehaves in every way a real one could: what is wrong is never
// ranked, what throws fails alone, and the sweep goes on.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <memory>
#include <new>

#include "verify/bench/runner_case.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

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

TEST_CASE("adversarial operands find what the first ones hid, and members that are not apart") {
  FakePrimitive fake = fake_with({{"wide", ""}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.verify_only = plan.config.is_adversarial = true;
  plan.command = "verify";
  int calls = 0, wrong_call = 0;
  fake.strategies[0].on_run = [&] { fake.strategies[0].factor = ++calls == wrong_call ? 3 : 2; };
  const auto reason = [&](int call) {
    calls = 0, wrong_call = call;
    RunResult result;
    run_plan(plan, result);
    const RunnerResult& wide = strategy(result.cases.at(0), "wide");
    CHECK(result.cases.at(0).reproduce.starts_with("wbench " + plan.command + " --op"));
    CHECK((wide.status == Status::ok) == wide.reason.empty());
    CHECK((wide.verify.before == "pass") == wide.reason.empty());
    return wide.reason;
  };
  CHECK(reason(0).empty());
  CHECK(calls == 9);  // its own operands, six fills, and with and without NaN in a member
  CHECK(reason(1).starts_with("member "));
  CHECK(calls == 1);
  const std::vector<std::string> fills{"whole numbers", "NaN and infinities", "sums that cancel",
                                       "subnormals",    "a wide range",       "sums of one sign"};
  for (int i = 0; i < 6; ++i) CHECK(reason(2 + i).starts_with("with " + fills[size_t(i)] + ": "));
  CHECK(reason(9) == "NaN in member 1 changes member 0");
  plan.config.is_adversarial = false;
  CHECK(reason(2).empty());
}

TEST_CASE("what the strategy before has left is no output") {
  FakePrimitive fake = fake_with({{"right", ""}, {"lazy", ""}});
  fake.strategies[1].writes = false;
  const Run r = run(fake, short_config());
  CHECK(strategy(r.result.cases[0], "right").status == Status::ok);
  CHECK(strategy(r.result.cases[0], "lazy").status == Status::verify_failed);
  CHECK(strategy(r.result.cases[0], "lazy").verify.nan_count == 12);
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
  CHECK(strategy(c, "fades").verify.bitwise_stable == std::optional(false));
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

TEST_CASE("where strategies were asked for and none can run, nothing else is measured") {
  FakePrimitive fake = fake_with({{"elsewhere", "needs a GPU"}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunPlan plan = fake_plan(spec, short_config());
  plan.strategies = {"elsewhere"};
  RunResult result;
  run_plan(plan, result);
  const CaseResult& c = result.cases.at(0);
  CHECK((c.status == Status::skipped && c.reason == "elsewhere: needs a GPU"));
  CHECK((c.strategies.size() == 1 && c.baselines.empty()));
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
    fake.cost = {1, 1e6, 1};  // of large tables, a few rows
    CHECK(run(fake, short_config()).result.cases[0].status == Status::ok);
  }
}

}  // namespace
}  // namespace wide::bench
