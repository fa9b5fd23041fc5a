// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// When samples are enough, in which order they are taken, baselines against themselves, what a
// launch adds, and what a strategy takes of memory.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <random>

#include "bench/run/counting_allocator.hpp"
#include "bench/run/evaluate.hpp"
#include "bench/statistics/settled.hpp"
#include "verify/bench/runner_case.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;

TEST_CASE("noise and entropy of samples") {
  CHECK(relative_noise_pct(std::vector<double>{100}) == 0);
  CHECK(relative_noise_pct(std::vector<double>{99, 101}) == Approx(1.41421).epsilon(1e-4));
  CHECK(sample_entropy(std::vector<double>{5, 5, 5, 5}, 0.5) == 0);
  CHECK(sample_entropy(std::vector<double>{1, 2, 1, 2}, 0.5) == Approx(1));
  CHECK(sample_entropy(std::vector<double>{1, 2, 3, 4}, 0.5) == Approx(2));
  CHECK(sample_entropy({}, 1) == 0);
}

TEST_CASE("entropy settles when later samples look like earlier ones, and not before") {
  std::mt19937 random(1);
  std::vector<double> steady, drifting;
  for (int i = 0; i < 4000; ++i) {
    steady.push_back(1000 + static_cast<double>(random() % 8));
    drifting.push_back(1000 + i);
  }
  CHECK(is_entropy_settled(steady));
  CHECK_FALSE(is_entropy_settled(std::span(steady).first(19)));
  CHECK_FALSE(is_entropy_settled(drifting));
}

CaseResult case_of(const RunConfig& config) {
  FakePrimitive fake = fake_with({{"good"}});
  const catalog::PrimitiveSpec spec = fake.spec();
  RunResult result;
  run_plan(fake_plan(spec, config), result);
  return result.cases.at(0);
}

RunConfig stopped_by(const std::string& criterion) {
  RunConfig config = short_config();
  config.stop = criterion;
  config.max_samples = 300;
  return config;
}

TEST_CASE("a run ends by the criterion asked for") {
  const auto reason = [&](const RunConfig& config) {
    return strategy(case_of(config), "good").measurements.at(0).stop_reason;
  };
  CHECK(reason(stopped_by("count")) == "count");
  RunConfig config = stopped_by("stdrel");
  config.max_noise_pct = 1000;
  CHECK(reason(config) == "stdrel");
  config.max_noise_pct = 1e-9;
  CHECK(reason(config) == "max_samples");
  config = stopped_by("entropy");
  config.max_samples = 18;  // below what entropy takes
  CHECK(reason(config) == "max_samples");
}

/// In which order two strategies and the baseline began their blocks.
std::vector<std::string> order_of(const std::string& interleave) {
  std::vector<std::string> order;
  FakePrimitive fake = fake_with({{"a"}, {"b"}});
  const auto note = [&](const std::string& name) {
    return [&order, name] {
      spin_us(150)();
      if (order.empty() || order.back() != name) order.push_back(name);
    };
  };
  for (test::FakeStrategy& s : fake.strategies) s.on_run = note(s.name);
  fake.member.on_run = note("loop");
  RunConfig config = short_config();
  config.verify = "off";
  config.rounds = 12;
  config.stop = "count";
  config.max_samples = 1200;
  config.interleave = interleave;
  const catalog::PrimitiveSpec spec = fake.spec();
  RunResult result;
  run_plan(fake_plan(spec, config), result);
  return order;
}

/// How often each name is followed by itself but one, as in a-b-a: where a round turns.
int64_t turns_of(const std::vector<std::string>& order) {
  int64_t turns = 0;
  for (size_t i = 2; i < order.size(); ++i) turns += order[i] == order[i - 2] ? 1 : 0;
  return turns;
}

TEST_CASE("rounds go back and forth, by lot, or always the same way") {
  const std::vector<std::string> abba = order_of("abba"), same = order_of("none");
  CHECK(turns_of(abba) >= 8);
  CHECK(turns_of(same) <= 3);  // of warming up and making samplers
  const int64_t random = turns_of(order_of("random"));
  CHECK(random > turns_of(same));
}

TEST_CASE("a baseline against itself is the noise floor, and shown by nobody") {
  RunConfig config = stopped_by("count");
  config.aa = true;
  const CaseResult c = case_of(config);
  REQUIRE(c.noise_floors.size() == 1);
  const NoiseFloor& floor = c.noise_floors[0];
  CHECK((floor.baseline == Baseline::loop && floor.regime == Regime::cpu));
  CHECK(floor.pairs >= 6);
  CHECK(floor.ratio == Approx(1).epsilon(0.5));
  CHECK(floor.floor_pct >= 0);
  CHECK(c.baselines.size() == 1);
  CHECK(speedup(c, "good").aa_floor_pct == floor.floor_pct);
  config.aa = false;
  CHECK(case_of(config).noise_floors.empty());
}

/// Six rounds of one sample each.
RunnerResult runner_of(const std::string& name, Regime regime, double time_ns) {
  RunnerResult r;
  r.name = name;
  Measurement m;
  m.regime = regime;
  for (int i = 0; i < 6; ++i) {
    m.samples_ns.push_back(time_ns);
    m.samples_round.push_back(i);
  }
  m.stats.n = 6;
  m.stats.median_ns = time_ns;
  r.measurements = {m};
  return r;
}

TEST_CASE("a verdict has to exceed the noise floor of its baseline and regime") {
  const std::vector<RunnerResult> strategies{runner_of("fast", Regime::cpu, 90)};
  const std::vector<RunnerResult> baselines{runner_of("loop", Regime::cpu, 100)};
  const auto verdict = [&](std::vector<NoiseFloor> floors) {
    return find_speedups(strategies, baselines, 1, floors).at(0).verdict;
  };
  CHECK(verdict({}) == "faster");
  CHECK(verdict({{Baseline::loop, Regime::cpu, 6, 1, 1, 1, 5}}) == "faster");
  CHECK(verdict({{Baseline::loop, Regime::cpu, 6, 1, 1, 1, 15}}) == "same");
  CHECK(verdict({{Baseline::loop, Regime::stream, 6, 1, 1, 1, 15}}) == "faster");
  const auto floors = find_noise_floors(runner_of("loop", Regime::cpu, 100),
                                        runner_of("loop#2", Regime::cpu, 80), 1);
  REQUIRE(floors.size() == 1);
  CHECK(floors[0].floor_pct == Approx(25));
}

TEST_CASE("what a launch adds is stream minus graph, per launch") {
  RunnerResult r = runner_of("loop", Regime::stream, 50'000);
  r.measurements.push_back(runner_of("loop", Regime::graph, 20'000).measurements[0]);
  find_launch_overhead(r, r);
  CHECK_FALSE(r.measurements[0].launch_overhead_ns_per_launch);  // launches are not known
  r.launches_per_call = 10;
  find_launch_overhead(r, r);
  CHECK(r.measurements[0].launch_overhead_ns_per_launch == 3000);
  r.measurements[0].launch_overhead_ns_per_launch.reset();
  r.measurements[1].below_resolution = true;
  find_launch_overhead(r, r);
  CHECK_FALSE(r.measurements[0].launch_overhead_ns_per_launch);
}

TEST_CASE("what a launch of the loop adds is its time minus that of the baseline graph") {
  RunnerResult loop = runner_of("loop", Regime::stream, 50'000);
  RunnerResult graph = runner_of("graph", Regime::graph, 20'000);
  loop.launches_per_call = 10;
  find_launch_overhead(loop, loop);
  CHECK_FALSE(loop.measurements[0].launch_overhead_ns_per_launch);  // it has no regime graph
  graph.status = Status::verify_failed;
  find_launch_overhead(loop, graph);
  CHECK_FALSE(loop.measurements[0].launch_overhead_ns_per_launch);
  graph.status = Status::ok;
  find_launch_overhead(loop, graph);
  CHECK(loop.measurements[0].launch_overhead_ns_per_launch == 3000);
  CHECK_FALSE(graph.measurements[0].launch_overhead_ns_per_launch);
}

TEST_CASE("a cold call cannot be faster than memory delivers what it reads") {
  const auto status_of = [](Regime regime, double time_ns) {
    RunnerResult r = runner_of("x", regime, time_ns);
    Yardstick y;
    y.cost = {1, 1000, 3000};
    y.peaks.mem_bw_bytes_per_s = 1e10;  // 100 ns to read
    y.timer_floor_ns = 1;
    evaluate(r, y);
    return r.status;
  };
  CHECK(status_of(Regime::cold, 90) == Status::implausible);
  CHECK(status_of(Regime::cold, 96) == Status::ok);   // within 5 %
  CHECK(status_of(Regime::graph, 90) == Status::ok);  // from the cache
}

/// Memory that shows whether it was written to.
class MarkingAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    blocks_.emplace_back(
        std::make_unique<std::vector<std::byte>>(static_cast<size_t>(bytes + 256), kMark));
    const auto start = reinterpret_cast<uintptr_t>(blocks_.back()->data());
    return blocks_.back()->data() + (256 - start % 256);
  }
  void deallocate(void*, int64_t) noexcept override {}
  int64_t num_written() const {
    return std::count_if(blocks_.begin(), blocks_.end(), [](const auto& block) {
      return std::any_of(block->begin(), block->end(), [](std::byte b) { return b != kMark; });
    });
  }
  int64_t num_blocks() const { return std::ssize(blocks_); }

 private:
  static constexpr std::byte kMark{0x5a};
  std::vector<std::unique_ptr<std::vector<std::byte>>> blocks_;
};

TEST_CASE("all operands of a case are allocated before any of them is filled") {
  const auto allocator = std::make_shared<MarkingAllocator>();
  const Context context = Context::cpu({1, allocator});
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  const auto workload = spec.make_workload(context, catalog::make_case(spec, {}), {});
  CHECK((allocator->num_blocks() == 4 && allocator->num_written() == 0));  // x, weight, bias, y
  CHECK(workload->input_views().size() == 3);
  CHECK((allocator->num_blocks() == 4 && allocator->num_written() == 3));
}

TEST_CASE("the counting allocator knows what is in use and what was at most") {
  const auto counting = std::make_shared<CountingAllocator>(Context::cpu());
  const Context context = Context::cpu({1, counting});
  const int64_t before = counting->present_bytes();
  {
    const Tensor one(context, Dtype::fp32, {256});
    CHECK(counting->present_bytes() - before >= 1024);
  }
  CHECK(counting->present_bytes() == before);
  CHECK(counting->peak_bytes() >= before + 1024);
  counting->restart_peak();
  CHECK(counting->peak_bytes() == before);
}

}  // namespace
}  // namespace wide::bench
