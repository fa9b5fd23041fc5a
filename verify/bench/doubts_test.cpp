// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What makes a measurement unreliable: each doubt at its bound and beyond, and where it is said.
#include "bench/document/doubts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "bench/compare/verdicts.hpp"
#include "bench/document/result_json.hpp"
#include "bench/page/page.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/report/exports.hpp"
#include "bench/report/report.hpp"
#include "bench/run/evaluate.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/compare_case.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Names = std::vector<std::string>;

/// 120 samples in 12 rounds around a microsecond, evenly spread over 0.4 %.
Measurement steady() {
  Measurement m;
  m.walltime_s = 1.2;
  for (int64_t round = 0; round < 12; ++round) {
    for (int64_t i = 0; i < 10; ++i) {
      m.samples_ns.push_back(1000 + 0.4 * static_cast<double>((7 * (10 * round + i)) % 11 - 5));
      m.samples_round.push_back(round);
    }
  }
  return m;
}

/// The doubts about one measurement, evaluated.
Names doubts_about(const Measurement& m, double timer_floor_ns = 0, double quantum_ns = 0) {
  RunnerResult runner;
  runner.measurements = {m};
  Yardstick y;
  y.timer_floor_ns = timer_floor_ns;
  y.timer_quantum_ns = quantum_ns;
  evaluate(runner, y);
  CHECK(is_doubtful(runner.measurements[0]) == !runner.measurements[0].stats.doubts->empty());
  for (const std::string& doubt : *runner.measurements[0].stats.doubts)
    CHECK_THAT(doubt_text(runner.measurements[0], doubt), ContainsSubstring(doubt));
  return *runner.measurements[0].stats.doubts;
}

template <class Change>
Names doubts_after(const Change& change) {
  Measurement m = steady();
  change(m);
  return doubts_about(m);
}

/// A measurement with statistics that nothing speaks against.
Measurement sound() {
  Measurement m = steady();
  m.stats.n = 30;
  m.stats.median_ns = 1000;
  m.stats.ci_lo_ns = 990;
  m.stats.ci_hi_ns = 1010;
  m.stats.between_round_cv_pct = 5;
  m.stats.trend_p = 0.01;
  m.stats.trend_pct_per_s = 50;
  m.stats.dip = Dip{0.1, 0.01};
  m.stats.p5_ns = 500;
  m.stats.p95_ns = 1500;
  m.stats.outliers = {0, 0, 0, 1};  // of 30
  m.discarded_throttle = 5;
  m.kept_throttle = 2;  // 7 of 35
  return m;
}

}  // namespace

TEST_CASE("each doubt has its bound") {
  CHECK(doubts_of(sound()).empty());
  const auto with = [](const auto& change) {
    Measurement m = sound();
    change(m);
    return doubts_of(m);
  };
  CHECK(with([](auto& m) { m.stats.n = 29, m.kept_throttle = 0; }) == Names{"few_samples"});
  CHECK(with([](auto& m) { m.samples_round.resize(100); }).empty());
  CHECK(with([](auto& m) { m.samples_round.resize(90); }) == Names{"few_rounds"});
  CHECK(with([](auto& m) { m.below_resolution = true; }) == Names{"below_resolution"});
  CHECK(with([](auto& m) { m.stats.ci_hi_ns = 1010.1; }) == Names{"wide_interval"});
  CHECK(with([](auto& m) { m.stats.between_round_cv_pct = 5.01; }) == Names{"unsteady_rounds"});
  CHECK(with([](auto& m) { m.stats.trend_p = 0.0099; }) == Names{"drift"});
  CHECK(with([](auto& m) { m.stats.trend_p = 0, m.stats.trend_pct_per_s = -0.85; }) ==
        Names{"drift"});
  CHECK(with([](auto& m) { m.stats.trend_p = 0, m.stats.trend_pct_per_s = 0.83; }).empty());
  CHECK(with([](auto& m) { m.stats.dip->p = 0.0099; }) == Names{"multimodal"});
  CHECK(with([](auto& m) { m.stats.dip->p = 0, m.stats.p5_ns = 1490; }).empty());
  CHECK(with([](auto& m) { m.stats.p95_ns = 2000; }).empty());
  CHECK(with([](auto& m) { m.stats.p95_ns = 2001; }) == Names{"heavy_tail"});
  CHECK(with([](auto& m) { m.stats.outliers.severe_low = 1; }) == Names{"heavy_tail"});
  CHECK(with([](auto& m) {
          m.stats.outliers.severe_high = 9, m.stats.p5_ns = 960, m.stats.p95_ns = 1010;
        }).empty());  // a clock's next step
  CHECK(with([](auto& m) { m.kept_throttle = 3; }) == Names{"throttled"});
  CHECK(with([](auto& m) { m.discarded_throttle = 8, m.kept_throttle = 0; }) == Names{"throttled"});
  CHECK(with([](auto& m) { m.stop_reason = "timeout"; }) == Names{"timed_out"});
  CHECK(with([](auto& m) { m.clocks = Clocks{1500, 1400, {}, {}, {}, 1500}; }).empty());
  CHECK(with([](auto& m) {
          m.clocks = Clocks{1500, 1400, {}, {}, {}};
        }) == Names{"unsettled_clock"});
  const auto at_clocks = [&](const auto& mhz_of) {
    return with([&](auto& m) {
      m.clocks = Clocks{1500, 1400, {}, {}, {}};
      for (int i = 0; i < 120; ++i) m.samples_sm_mhz.push_back(mhz_of(i));
    });
  };
  CHECK(at_clocks([](int) { return 1500; }).empty());
  CHECK(at_clocks([](int i) { return i % 2 == 0 ? 1400 : 1600; }).empty());  // a power cap
  CHECK(at_clocks([](int i) { return i < 40 ? 1485 : 1500; }).empty());
  CHECK(at_clocks([](int i) { return i < 40 ? 1484 : 1500; }) == Names{"unsettled_clock"});
  CHECK(at_clocks([](int i) { return i < 80 ? 1500 : 1400; }) == Names{"unsettled_clock"});
  Measurement stepped = sound();
  stepped.clocks = Clocks{1500, 1400, {}, {}, {}};
  for (int i = 0; i < 120; ++i) stepped.samples_sm_mhz.push_back(i < 40 ? 1400 : 1500);
  RunConfig config;
  config.clock_tol_pct = 6.6;
  CHECK(doubts_of(stepped, config) == Names{"unsettled_clock"});
  config.clock_tol_pct = 6.7;
  CHECK(doubts_of(stepped, config).empty());
  CHECK(with([](auto& m) { m.warmup_s = 0.1; }).empty());
  CHECK(with([](auto& m) { m.warmup_s = 0.099; }) == Names{"short_warmup"});
  CHECK(with([](auto& m) {
          m.warmup_s = 0.099, m.clocks = Clocks{1500, 1400, {}, {}, {}, 1500};
        }).empty());
  stepped.warmup_s = 0.05;
  CHECK(doubts_of(stepped, config).empty());
  CHECK(doubt_text(stepped, "short_warmup") == "short_warmup: 0.05 s");
  for (const char* reason : {"ci", "stdrel", "count", "max_samples", "interrupted", ""})
    CHECK(with([&](auto& m) { m.stop_reason = reason; }).empty());
  Measurement none = sound();
  none.stats = {};
  none.samples_round.clear();
  CHECK(doubts_of(none) == Names{"few_samples", "few_rounds", "throttled"});
}

TEST_CASE("a tail of a loaded machine is a doubt") {
  Measurement m = steady();
  for (size_t i = 0; i < m.samples_ns.size(); i += 7)  // 18 of 120
    m.samples_ns[i] *= 2 + static_cast<double>(i) / 4;
  RunnerResult runner;
  runner.measurements = {m};
  evaluate(runner, Yardstick());
  CHECK(*runner.measurements[0].stats.doubts == Names{"heavy_tail"});
  CHECK_THAT(doubt_text(runner.measurements[0], "heavy_tail"),
             ContainsSubstring("heavy_tail: p95 2") &&
                 ContainsSubstring(" times the median, 15% severe outliers"));
}

TEST_CASE("samples say what speaks against them") {
  CHECK(doubts_about(steady()).empty());
  CHECK(doubts_after([](Measurement& m) { m.stop_reason = "timeout"; }) == Names{"timed_out"});
  CHECK(doubts_about(steady(), 201) == Names{"below_resolution"});
  Measurement unsettled = steady();
  unsettled.clocks = Clocks{1500, 1400, {}, {}, {}};
  CHECK(doubts_about(unsettled) == Names{"unsettled_clock"});
  CHECK(doubt_text(unsettled, "unsettled_clock") == "unsettled_clock: 1500 MHz, 1400 at least");
  Measurement apart = sound();
  apart.stats.between_round_cv_pct = 312.4;
  CHECK(doubt_text(apart, "unsteady_rounds") == "unsteady_rounds: 312% apart");
  apart.stats.between_round_cv_pct = 5.25;
  CHECK(doubt_text(apart, "unsteady_rounds") == "unsteady_rounds: 5.2% apart");
  CHECK(doubts_after([](Measurement& m) {
          m.samples_ns.resize(20);
          m.samples_round.resize(20);
        }) == Names{"few_samples", "few_rounds"});
  const auto by_place = [](double step, int64_t modulus) {
    return doubts_after([&](Measurement& m) {
      for (size_t i = 0; i < m.samples_ns.size(); ++i) {
        const int64_t place = modulus > 0 ? static_cast<int64_t>(i) % modulus : m.samples_round[i];
        m.samples_ns[i] += step * static_cast<double>(place);
      }
    });
  };
  CHECK(by_place(40, 2) == Names{"multimodal"});  // every other one is 4 % off, in each round
  CHECK(by_place(3, 2).empty());
  CHECK(by_place(1.5, 0) == Names{"drift"});
  CHECK(by_place(0.5, 0).empty());
  CHECK(by_place(25, 0) == Names{"wide_interval", "unsteady_rounds", "drift"});
  // Steps of the clock are no modes.
  Measurement stepped = steady();
  for (size_t i = 0; i < stepped.samples_ns.size(); ++i)
    stepped.samples_ns[i] = i % 2 == 0 ? 992 : 1024;
  CHECK(doubts_about(stepped, 0, 32).empty());
  CHECK(doubts_about(stepped, 0, 1) == Names{"multimodal"});
}

TEST_CASE(
    "results, tables and exports say what is unreliable, and results before 1.6 do not know") {
  const RunResult result = sample_result();  // whose graphs are, and streams are not
  const nlohmann::json document = nlohmann::json::parse(to_json(result).dump());
  CHECK(document["totals"]["unreliable"] == 4);
  const auto& measurements = document["cases"][0]["strategies"][0]["measurements"];
  CHECK(measurements[0]["stats"]["reliable"] == true);
  CHECK(measurements[0]["stats"]["modes"] == 1);
  CHECK(measurements[1]["stats"]["reliable"] == false);
  CHECK(measurements[1]["stats"]["doubts"] == Names{"wide_interval", "multimodal"});
  CHECK(measurements[1]["stats"]["modes"] == 2);
  ReportOptions options;
  options.width = 400;
  CHECK_THAT(
      report_text(result, options),
      ContainsSubstring(
          "unreliable: 12 of 28 times, in 4 of 4 cases; -v names what speaks against each\n") &&
          !ContainsSubstring("wide_interval"));
  options.details = true;
  CHECK_THAT(report_text(result, options),
             ContainsSubstring("wide_interval multimodal") && !ContainsSubstring("unreliable: "));
  options.explain = true;
  CHECK_THAT(report_text(result, options),
             ContainsSubstring("graph: unreliable, multimodal: dip 0.062, p 0.001"));
  CHECK_THAT(export_jsonl(result),
             ContainsSubstring("\"modes\":2,\"dip_p\":0.001,\"reliable\":false,"
                               "\"doubts\":\"wide_interval multimodal\""));
  CHECK_THAT(export_google_benchmark(result),
             ContainsSubstring("\"label\": \"unreliable: wide_interval multimodal\""));
  CHECK_THAT(export_github_action(result),
             ContainsSubstring(", unreliable: wide_interval multimodal"));
  CHECK_THAT(report_page({.results = {result}, .comparison = {}, .history = {}}),
             ContainsSubstring("unreliable: wide_interval multimodal"));
  nlohmann::json old = document;
  for (auto& c : old["cases"]) {
    for (const char* group : {"strategies", "baselines"}) {
      for (auto& runner : c[group]) {
        for (auto& m : runner["measurements"]) m["stats"].erase("doubts");
      }
    }
  }
  const RunResult unknown = parse_result(old.dump());
  CHECK_FALSE(unknown.cases[0].strategies[0].measurements[1].stats.doubts);
  CHECK_THAT(report_text(unknown, options), !ContainsSubstring("unreliable"));
  const std::string written = to_json(unknown).dump();
  CHECK_THAT(written,
             ContainsSubstring("\"reliable\":null") && ContainsSubstring("\"modes\":null"));
  CHECK(to_json(parse_result(written)).dump() == written);
}

TEST_CASE("comparisons say which cells are unreliable, and fail where that is asked for") {
  const auto base = runs_of({1000, 2000, 3000});
  auto candidate = runs_of({1000, 2600, 3000});
  candidate[2].cases[1].strategies[0].measurements[0].stats.doubts = {"drift"};
  candidate[3].cases[1].strategies[0].measurements[0].stats.doubts = {"throttled", "drift"};
  candidate[1].cases[2].strategies[0].measurements[0].stats.doubts.reset();
  const Comparison c = compare(base, candidate, options_of());
  CHECK(c.count_unreliable() == 1);
  CHECK(c.cells[1].judgement.verdict == Verdict::slower);
  CHECK(c.cells[1].candidate.doubts == Names{"drift", "throttled"});
  CHECK(c.cells[1].base.doubts.empty());
  CompareView view{400, false, true, true};
  const std::string text = compare_text(c, view);
  CHECK_THAT(text, ContainsSubstring("SLOWER, severe, unreliable") &&
                       ContainsSubstring("; 1 unreliable") &&
                       ContainsSubstring("  unreliable: candidate drift throttled\n"));
  CHECK_THAT(compare_markdown(c, view), ContainsSubstring("SLOWER, severe, unreliable"));
  CHECK_THAT(compare_github(c, {}), ContainsSubstring(", unreliable, "));
  const auto document = nlohmann::json::parse(compare_json(c, {}));
  CHECK(document["summary"]["unreliable"] == 1);
  CHECK(document["rows"][1]["candidate"]["doubts"] == Names{"drift", "throttled"});
  CHECK(document["rows"][0]["candidate"]["doubts"].empty());
  CHECK(exit_code_of(c, parse_fail_on("none")) == kSuccess);
  CHECK(exit_code_of(c, parse_fail_on("missing")) == kSuccess);
  CHECK(exit_code_of(c, parse_fail_on("unreliable")) == kInconclusive);
  CHECK(exit_code_of(c, parse_fail_on("regression,unreliable")) == kRegression);
  CHECK_THAT(compare_junit(c, parse_fail_on("unreliable")), ContainsSubstring("failures=\"1\""));
  CHECK(compare(base, base, options_of()).count_unreliable() == 0);
}

TEST_CASE("--strict makes an unreliable time an exit code") {
  CHECK(wbench("run " + kTiny).code == kSuccess);
  const Outcome strict = wbench("run " + kTiny + "--strict --json -");
  CHECK(strict.code == kInconclusive);
  CHECK_THAT(strict.err, ContainsSubstring("unreliable: 1 of 1 case;"));
  CHECK(parse_result(strict.out).exit_code == kInconclusive);
}

TEST_CASE("--strict takes no time whose case has timed out") {
  // More samples are asked for than there is time for, whatever the machine.
  const std::string line =
      "run --op linear --n 2 --batch 2 --d 8 -d cpu -q --warmup-time 0 --min-samples 100000000 "
      "--max-samples 1000000000 --timeout 0.2 --strict --json -";
  const Outcome strict = wbench(line);
  CHECK(strict.code == kInconclusive);
  const RunResult result = parse_result(strict.out);
  for (const Measurement& m : result.cases.at(0).strategies.at(0).measurements) {
    CHECK(m.stop_reason == "timeout");
    CHECK(m.stats.doubts.value().back() == "timed_out");
    CHECK_THAT(doubt_text(m, "timed_out"), ContainsSubstring("% of the median after 0."));
  }
}

TEST_CASE("a check against zeros is mistrusted: whoever writes zeros passes it") {
  const std::string checks = "run " + kTiny + "--verify only ";
  const auto verify_of = [](const Outcome& o) {
    return parse_result(o.out).cases.at(0).strategies.at(0).verify;
  };
  const VerifyOutcome uniform = verify_of(wbench(checks + "--json -"));
  CHECK((uniform.zeros == 0 && !is_mistrusted(uniform, 0.3)));
  const Outcome zeros = wbench(checks + "--init zeros --json -");
  CHECK(zeros.code == kSuccess);
  const VerifyOutcome all = verify_of(zeros);
  CHECK((all.before == "pass" && all.zeros == all.elements_compared && is_mistrusted(all, 0.9)));
  CHECK(nlohmann::json::parse(zeros.out)["totals"]["mistrusted"] == 1);
  CHECK_THAT(wbench(checks + "--init zeros").out, ContainsSubstring("MISTRUSTED linear n=2"));
  const Outcome strict = wbench(checks + "--init zeros --strict");
  CHECK(strict.code == kInconclusive);
  CHECK_THAT(strict.err, ContainsSubstring("mistrusted: 1 of 1 case:"));
  CHECK(wbench(checks + "--strict").code == kSuccess);
  // Half of the results of relu are 0, and what is not checked is not mistrusted.
  const VerifyOutcome relu = verify_of(
      wbench("run --op pointwise --function relu --n 2 --batch 2 --verify only --json -" + kShort));
  CHECK(is_mistrusted(relu, 0.3));
  CHECK_FALSE(is_mistrusted(relu, trusted_zeros("pointwise")));
  CHECK_FALSE(is_mistrusted(VerifyOutcome(), 0.3));
  VerifyOutcome bound = all;
  bound.elements_compared = 100;
  bound.zeros = 65;
  CHECK_FALSE(is_mistrusted(bound, 0.65));
  bound.zeros = 66;
  CHECK(is_mistrusted(bound, 0.65));
  CHECK((trusted_zeros("softmax") == 0.3 && trusted_zeros("linear") == 0.9));
  CHECK((trusted_zeros("binary") == 0.65 && trusted_zeros("model:mlp") == 0.65));
  VerifyOutcome old = all;
  old.zeros.reset();
  CHECK_FALSE(is_mistrusted(old, 0.3));
}

}  // namespace wide::bench
