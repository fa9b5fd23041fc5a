// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Summaries and judgements of made-up measurements, worked out by hand.
#include "bench/run/summary.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "bench/run/evaluate.hpp"
#include "bench/statistics/statistics.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;

Speedup speedup(const std::string& strategy, double ratio, double lo, double hi,
                int64_t pairs = 12) {
  const char* verdict = verdict_of({ratio, {lo, hi}, pairs});
  return {strategy, Baseline::loop, Regime::cpu, pairs, ratio, lo, hi, verdict};
}

CaseResult case_of(int64_t n, std::vector<Speedup> speedups, const std::string& op = "linear",
                   int64_t batch = 16) {
  CaseResult result;
  result.point = catalog::Case(op, {{"n", n}, {"batch", batch}});
  result.speedups = std::move(speedups);
  return result;
}

TEST_CASE("crossover, threshold, wins, best and geometric mean") {
  const std::vector<CaseResult> cases{
      case_of(2, {speedup("a", 1.2, 1.1, 1.3)}),  // above, but 4 is not
      case_of(4, {speedup("a", 0.9, 0.8, 1.1), speedup("b", 0.7, 0.6, 0.8)}),
      case_of(8, {speedup("a", 1.1, 1.02, 1.2), speedup("b", 1.0, 0.9, 1.1)}),
      case_of(16, {speedup("a", 1.5, 1.4, 1.6), speedup("b", 2.0, 1.9, 2.1)}),
      case_of(32, {speedup("a", 4.0, 3.5, 4.5), speedup("b", 3.0, 2.9, 3.1)}),
  };
  const std::vector<OpSummary> summaries = summarize(cases);
  REQUIRE(summaries.size() == 1);
  const OpSummary& s = summaries[0];
  CHECK(s.op == "linear");
  CHECK(s.crossover_n == 8);
  CHECK(s.recommended_threshold == 16);
  CHECK(s.strategy_wins == std::vector<std::pair<std::string, int64_t>>{{"a", 4}, {"b", 1}});
  CHECK(*s.best_speedup_ratio == 4);
  CHECK(s.best_strategy == "a");
  CHECK(s.best_case.find("n=32") == 0);
  CHECK(*s.geomean_speedup == Approx(std::pow(1.2 * 0.9 * 1.1 * 2.0 * 4.0, 0.2)));
}

TEST_CASE("every case of an N counts, and a failed one breaks the claim") {
  std::vector<CaseResult> cases{case_of(4, {speedup("a", 2, 1.9, 2.1)}),
                                case_of(8, {speedup("a", 2, 1.9, 2.1)}),
                                case_of(8, {speedup("a", 0.9, 0.8, 1.0)}, "linear", 64),
                                case_of(16, {speedup("a", 2, 1.9, 2.1)})};
  CHECK(summarize(cases)[0].crossover_n == 16);
  cases.back().status = Status::oom;
  cases.back().speedups.clear();
  CHECK_FALSE(summarize(cases)[0].crossover_n);
  cases.back().status = Status::skipped;  // impossible there: no claim about it
  cases.erase(cases.begin() + 2);
  CHECK(summarize(cases)[0].crossover_n == 4);
  cases[1].speedups[0] = speedup("a", 2, 1.9, 2.1, 3);  // too few rounds for a claim
  CHECK_FALSE(summarize(cases)[0].crossover_n);
}

TEST_CASE("within what a verdict calls the same there is no crossover") {
  std::vector<CaseResult> cases{case_of(4, {speedup("a", 1.005, 1.002, 1.009)}),
                                case_of(8, {speedup("a", 1.02, 1.005, 1.04)}),
                                case_of(16, {speedup("a", 1.5, 1.4, 1.6)})};
  const auto crossover = [&] { return summarize(cases)[0].crossover_n; };
  const auto maybe = [&] { return summarize(cases)[0].crossover_lo; };
  CHECK(cases[0].speedups[0].verdict == "same");
  CHECK((crossover() == 16 && maybe() == 8));
  cases[1].speedups[0] = speedup("a", 1.02, 1.011, 1.04);
  CHECK((crossover() == 8 && maybe() == 8));
  cases[1].speedups[0].aa_floor_pct = 5;  // the baseline differs from itself by more
  cases[1].speedups[0].verdict = verdict_of({1.02, {1.011, 1.04}, 12}, 0.05);
  CHECK((crossover() == 16 && maybe() == 16));
  CHECK(summarize(cases)[0].recommended_threshold == 16);
  cases[2].speedups[0].aa_floor_pct = 45;
  cases[2].speedups[0].verdict = verdict_of({1.5, {1.4, 1.6}, 12}, 0.45);
  CHECK((!crossover() && maybe() == 16 && !summarize(cases)[0].recommended_threshold));
}

TEST_CASE("the crossover lies between where intervals may be faster and where they are") {
  std::vector<CaseResult> cases{
      case_of(2, {speedup("a", 0.8, 0.7, 0.9)}), case_of(4, {speedup("a", 0.98, 0.9, 1.1)}),
      case_of(8, {speedup("a", 1.1, 0.95, 1.2)}), case_of(16, {speedup("a", 1.5, 1.4, 1.6)})};
  const auto bounds = [&] {
    const OpSummary s = summarize(cases)[0];
    CHECK(s.crossover_hi == s.crossover_n);
    return std::pair(s.crossover_lo, s.crossover_hi);
  };
  using Bounds = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  CHECK(bounds() == Bounds{4, 16});
  cases[3].speedups[0] = speedup("a", 1.05, 0.99, 1.1);
  CHECK(bounds() == Bounds{4, std::nullopt});  // beyond the sweep, perhaps
  cases[3].speedups[0] = speedup("a", 0.9, 0.85, 0.99);
  CHECK(bounds() == Bounds{std::nullopt, std::nullopt});
  cases[3].speedups[0] = speedup("a", 0.9, 0.85, 0.99, 3);  // too few to rule it out
  CHECK(bounds() == Bounds{4, std::nullopt});
  cases[2].speedups.clear();
  cases[2].status = Status::oom;  // nobody goes wide there
  CHECK(bounds() == Bounds{16, std::nullopt});
}

/// Cases of two strategies whose times are a law's, at some n and batch.
CaseResult timed(int64_t n, int64_t batch, double wide_ns, double slow_ns) {
  CaseResult c = case_of(n, {speedup("wide", 2, 1.9, 2.1)});
  c.point =
      catalog::Case("linear", {{"n", n, false}, {"batch", batch, false}, {"d", int64_t{8}, true}});
  const auto add = [&](const char* name, double ns) {
    RunnerResult r;
    r.name = name;
    Measurement m;
    m.regime = Regime::cpu;
    m.stats.n = 30;
    m.stats.median_ns = ns;
    r.measurements.push_back(m);
    c.strategies.push_back(r);
  };
  add("wide", wide_ns);
  add("slow", slow_ns);
  return c;
}

TEST_CASE("times are fitted over n where the other axes are alike") {
  std::vector<CaseResult> cases;
  for (const int64_t batch : {int64_t{1}, int64_t{32}}) {
    for (const double n : {2.0, 4.0, 8.0, 16.0}) {
      const auto scale = static_cast<double>(batch);
      cases.push_back(
          timed(static_cast<int64_t>(n), batch, 1000 * scale + 10 * n, 50 * scale * n * n));
    }
  }
  cases.pop_back();
  cases.pop_back();  // batch 32 has two values of n left: too few
  const std::vector<ScalingFit> fits = summarize(cases)[0].scaling_fits;
  REQUIRE(fits.size() == 2);
  CHECK((fits[0].strategy == "wide" && fits[0].axes == "batch=1" && fits[0].points == 4));
  CHECK(fits[0].model == "a+b*n");
  CHECK((fits[0].a_ns == Approx(1000) && fits[0].b_ns == Approx(10)));
  CHECK((fits[1].strategy == "slow" && fits[1].model == "a+b*n^2" && fits[1].b_ns == Approx(50)));
  CHECK(fits[1].rms_pct < 1e-6);
  // What failed, or is below the timer's resolution, is no point.
  cases[0].strategies[0].status = Status::failed;
  cases[1].strategies[1].measurements[0].below_resolution = true;
  const std::vector<ScalingFit> fewer = summarize(cases)[0].scaling_fits;
  REQUIRE(fewer.size() == 2);
  CHECK((fewer[0].points == 3 && fewer[1].points == 3));
  cases[2].strategies[0].measurements[0].regime = Regime::graph;
  CHECK(summarize(cases)[0].scaling_fits.size() == 1);
}

TEST_CASE("summaries are per op, regime and baseline") {
  std::vector<CaseResult> cases{case_of(4, {speedup("a", 2, 1.9, 2.1)}),
                                case_of(4, {speedup("a", 0.5, 0.4, 0.6)}, "embedding")};
  Speedup graph = speedup("a", 1.5, 1.4, 1.6);
  graph.regime = Regime::graph;
  graph.baseline = Baseline::graph;
  cases[0].speedups.push_back(graph);
  const auto summaries = summarize(cases);
  REQUIRE(summaries.size() == 3);
  CHECK(summaries[0].regime == Regime::graph);
  CHECK(*summaries[0].best_speedup_ratio == 1.5);
  CHECK(*summaries[1].best_speedup_ratio == 2);
  CHECK(summaries[2].op == "embedding");
  CHECK_FALSE(summaries[2].crossover_n);
  CHECK(summarize({}).empty());
  for (const char* word : {"crossover N", "threshold", "wins", "geomean"})
    CHECK(summary_definitions().find(word) != std::string::npos);
}

Measurement measurement(double time_ns, int64_t rounds = 12) {
  Measurement m;
  m.regime = Regime::stream;
  for (int64_t round = 0; round < rounds; ++round) {
    for (const double factor : {1.0, 0.99, 1.01}) {
      m.samples_ns.push_back(time_ns * factor);
      m.samples_round.push_back(round);
    }
  }
  return m;
}

RunnerResult runner(const std::string& name, double time_ns) {
  RunnerResult result;
  result.name = name;
  result.measurements.push_back(measurement(time_ns));
  return result;
}

TEST_CASE("rates, floor and resolution") {
  Yardstick y;
  y.cost = {2e6, 3e3, 1e3, 12};
  y.floor = {400, 100, 1000};
  RunnerResult r = runner("a", 2000);
  evaluate(r, y);
  const Measurement& m = r.measurements[0];
  CHECK(m.stats.median_ns == 2000);
  CHECK(*m.flops_per_s == Approx(1e12));
  CHECK(*m.mem_bw_bytes_per_s == Approx(2e9));
  CHECK(*m.items_per_s == Approx(6e6));
  CHECK(*m.pct_of_floor == Approx(70));
  CHECK(*m.pct_of_mem_peak == Approx(20));
  CHECK(*m.pct_of_flop_peak == Approx(5));
  CHECK(m.roofline_bound == "launch");
  CHECK(m.stats.ci_seed == y.seed);
  CHECK_FALSE(m.few_samples);
  CHECK_FALSE(m.below_resolution);
  y.timer_floor_ns = 401;
  evaluate(r, y);
  CHECK(m.below_resolution);
  r.measurements[0].iters_per_sample = 2;  // a sample is two calls
  evaluate(r, y);
  CHECK_FALSE(m.below_resolution);
  r.measurements[0] = measurement(2000, 9);
  evaluate(r, y);
  CHECK(r.measurements[0].few_samples);
}

TEST_CASE("what bounds a call is the floor's largest part, where all of it is known") {
  const auto bound = [](const catalog::Cost& cost, const Floor& floor) {
    Yardstick y;
    y.cost = cost;
    y.floor = floor;
    return roofline_bound(y);
  };
  const catalog::Cost both{1, 1, 1}, moves{0, 1, 1}, computes{1, 0, 0};
  CHECK(bound(both, {300, 200, 100}) == "memory");
  CHECK(bound(both, {200, 300, 100}) == "compute");
  CHECK(bound(both, {200, 300, 400}) == "launch");
  CHECK(bound(moves, {300, 0, 100}) == "memory");
  CHECK(bound(computes, {0, 300, 100}) == "compute");
  CHECK(bound(both, {300, 0, 100}).empty());
  CHECK(bound(both, {0, 300, 100}).empty());
  CHECK(bound({}, {0, 0, 0}).empty());
  CHECK(bound({}, {0, 0, 100}) == "launch");
}

TEST_CASE("plausibility is judged by the hardware's peaks, not by what was measured") {
  Yardstick y;
  y.cost = {2e6, 1000, 3000};
  y.peaks.flops_per_s = 1e12;  // 2000 ns
  y.floor = {1e6, 1e6, 1e6};   // above 100 % of a measured floor is no doubt
  RunnerResult near = runner("a", 2000 / 1.049), above = runner("b", 2000 / 1.06);
  evaluate(near, y);
  evaluate(above, y);
  CHECK(near.status == Status::ok);
  CHECK(*near.measurements[0].pct_of_floor > 100);
  CHECK(above.status == Status::implausible);
  CHECK(above.reason ==
        "regime stream: 1887 ns, but at the device's peak flops the work takes 2000 ns");
  y.peaks = {2e9, 0};  // 2000 ns
  RunnerResult cached = runner("c", 100), streaming = runner("d", 500);
  evaluate(cached, y);
  CHECK(cached.status == Status::ok);
  y.outgrows_cache = true;
  evaluate(streaming, y);
  CHECK(streaming.status == Status::implausible);
  CHECK(streaming.reason.find("bandwidth") != std::string::npos);

  RunnerResult enqueued = runner("e", 500);
  enqueued.measurements[0].regime = Regime::cpu;
  y.host_only_enqueues = true;
  evaluate(enqueued, y);
  CHECK(enqueued.status == Status::ok);
  CHECK_FALSE(enqueued.measurements[0].pct_of_floor);
  CHECK_FALSE(enqueued.measurements[0].flops_per_s);
}

TEST_CASE("an H200's peaks leave room for the fastest kernels known, and for no more") {
  const Hardware h200{90, 132, 1980e6, 3201e6, 768};
  CHECK(peaks_of(h200, Dtype::fp32).mem_bw_bytes_per_s == Approx(4.917e12).epsilon(1e-3));
  CHECK(peaks_of(h200, Dtype::fp16).flops_per_s == Approx(1070.5e12).epsilon(1e-3));
  CHECK(peaks_of(h200, Dtype::bf16).flops_per_s == peaks_of(h200, Dtype::fp16).flops_per_s);
  CHECK(peaks_of(h200, Dtype::fp32).flops_per_s == Approx(535.3e12).epsilon(1e-3));  // by tf32
  CHECK(peaks_of(h200, Dtype::fp8_e4m3).flops_per_s == Approx(2141e12).epsilon(1e-3));
  CHECK(peaks_of(h200, Dtype::int32).flops_per_s == 0);
  // Of data sheets, at the clocks they name: an A100, and a part that nobody has heard of.
  const Hardware a100{80, 108, 1410e6, 1593e6, 640};
  CHECK(peaks_of(a100, Dtype::fp16).flops_per_s == Approx(312e12).epsilon(1e-3));
  CHECK(peaks_of(a100, Dtype::fp32).flops_per_s == Approx(156e12).epsilon(1e-3));
  CHECK(peaks_of(a100, Dtype::fp32).mem_bw_bytes_per_s == Approx(2.039e12).epsilon(1e-3));
  CHECK(peaks_of({999, 132, 1980e6, 0, 768}, Dtype::fp16).flops_per_s == 0);
  // 8 x 1024^3 by tf32 in 60 us, and by three times as many products in 190 us.
  Yardstick y;
  y.cost = {8 * 2.0 * 1024 * 1024 * 1024, 1, 1};
  y.peaks = peaks_of(h200, Dtype::fp32);
  for (const double us : {60, 190, 30}) {
    RunnerResult tf32 = runner("tf32", us * 1e3);
    evaluate(tf32, y);
    CHECK((tf32.status == Status::ok) == (us > 32));
  }
}

TEST_CASE("times that are none") {
  Yardstick y;
  y.timer_floor_ns = 10;
  RunnerResult zero = runner("zero", 0), base = runner("loop", 5);
  evaluate(zero, y);
  CHECK(zero.measurements[0].below_resolution);
  CHECK_FALSE(zero.measurements[0].flops_per_s);
  CHECK(find_speedups(std::vector{zero}, std::vector{base}, 1)[0].verdict == "not_comparable");
  zero.measurements[0].below_resolution = false;  // a floor of nothing flags nothing
  CHECK(find_speedups(std::vector{zero}, std::vector{base}, 1)[0].verdict == "not_comparable");
  RunnerResult broken = runner("broken", std::nan(""));
  CHECK_THROWS_AS(evaluate(broken, y), Error);
  RunnerResult none;
  none.measurements.emplace_back();
  evaluate(none, y);
  CHECK(none.measurements[0].stats.n == 0);
}

TEST_CASE("speedups pair a regime with its own") {
  RunnerResult fast = runner("fast", 1000), failed = runner("failed", 1000);
  fast.measurements.push_back(measurement(100));
  fast.measurements[1].regime = Regime::graph;
  failed.status = Status::verify_failed;
  RunnerResult loop = runner("loop", 3000), streams = runner("streams", 2000);
  RunnerResult graph = runner("graph", 400);
  graph.measurements[0].regime = Regime::graph;
  const auto speedups =
      find_speedups(std::vector{fast, failed}, std::vector{loop, streams, graph}, 1);
  REQUIRE(speedups.size() == 5);
  CHECK(*speedups[0].speedup_ratio == Approx(3));
  CHECK(speedups[0].verdict == "faster");
  CHECK(speedups[0].pairs == 12);
  CHECK(speedups[0].p_wilcoxon == 2. / 4096);  // all 12 rounds say the same
  CHECK(speedups[1].baseline == Baseline::streams);
  CHECK(*speedups[1].speedup_ratio == Approx(2));
  CHECK(speedups[2].baseline == Baseline::graph);
  CHECK(*speedups[2].speedup_ratio == Approx(4));
  CHECK(speedups[3].verdict == "not_comparable");
  CHECK_FALSE(speedups[3].ci_lo);
}

TEST_CASE("a case is as bad as its worst runner") {
  const auto settled = [](Status first, Status second, Status baseline) {
    CaseResult c;
    c.strategies = {runner("a", 1), runner("b", 1)};
    c.baselines = {runner("loop", 1)};
    c.strategies[0].status = first;
    c.strategies[1].status = second;
    c.baselines[0].status = baseline;
    settle_status(c);
    return c.status;
  };
  using enum Status;
  CHECK(settled(ok, ok, ok) == ok);
  CHECK(settled(ok, skipped, skipped) == ok);
  CHECK(settled(skipped, skipped, ok) == skipped);
  CHECK(settled(skipped, skipped, failed) == failed);
  CHECK(settled(oom, failed, ok) == failed);
  CHECK(settled(implausible, failed, ok) == implausible);
  CHECK(settled(implausible, ok, verify_failed) == verify_failed);
}

}  // namespace
}  // namespace wide::bench
