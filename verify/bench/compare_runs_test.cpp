// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench compare`: results made by hand, paired, judged, written in every format and judged again
// by the exit code.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/compare/verdicts.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/compare_case.hpp"
#include "verify/bench/compare_store.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

std::string verdicts(const Comparison& comparison) {
  std::string text;
  for (const ComparedCell& cell : comparison.cells)
    text += std::string(to_string(cell.judgement.verdict)) + " ";
  return text;
}

TEST_CASE("cells are paired by case, strategy and regime") {
  const auto base = runs_of({1000, 2000, 3000}), candidate = runs_of({1000, 2200, 2700});
  const Comparison c = compare(base, candidate, options_of());
  CHECK(verdicts(c) == "SAME SLOWER FASTER ");
  CHECK(c.cells[1].judgement.change_pct == Approx(10));
  CHECK(c.cells[1].judgement.severity == Severity::moderate);
  CHECK(*c.cells[1].base.median == 2000);
  CHECK(c.cells[1].candidate.count == 5);
  CHECK(*c.geomean_change_pct == Approx(100 * (std::cbrt(1.1 * 0.9) - 1)));
  REQUIRE(c.cells[1].tests);
  CHECK(c.cells[1].tests->chosen == "student");
  CHECK(c.cells[1].tests->p < 1e-8);
  CHECK(c.cells[1].tests->p_adjusted == Approx(c.cells[1].tests->p * 1.5).epsilon(0.5));
  CHECK(c.cells[1].tests->cohens_d.value() > 0.8);
  CHECK(c.cells[1].tests->rank_biserial == 1);
  CHECK(c.cells[0].tests->p_adjusted == Approx(1));
  // Twice a deviation of 0.158 %.
  CHECK(c.noise_floor_pct.value() == Approx(0.316).epsilon(0.01));
}

TEST_CASE("a rate says the same as its time, with the other sign") {
  const Comparison c =
      compare(runs_of({1000, 2000}), runs_of({1000, 2200}), options_of("flops_per_s"));
  CHECK(verdicts(c) == "SAME SLOWER ");
  CHECK(c.cells[1].judgement.change_pct == Approx(-100 / 11.));
  // One run says nothing of how runs differ.
  CompareOptions options = options_of("flops_per_s");
  CHECK(verdicts(compare(runs_of({2000}, 1), runs_of({2200}, 1), options)) == "AMBIGUOUS ");
  options.noise_floor_pct = 1;
  const Comparison few = compare(runs_of({2000}, 1), runs_of({2200}, 1), options);
  CHECK(verdicts(few) == "SLOWER ");
  CHECK_FALSE(few.cells[0].tests);
  CHECK_THROWS_AS(find_measured_metric("speedup_ratio"), Error);
  CHECK_THROWS_AS(find_measured_metric("time"), Error);
}

TEST_CASE("what is absent, new, wrong or too short is said, and not judged") {
  auto base = runs_of({1000, 2000, 3000, 4000}), candidate = runs_of({1000, 2000, 3000, 4000});
  for (RunResult& run : base) run.cases.erase(run.cases.begin());
  candidate[2].cases[1].strategies[0].measurements[0].below_resolution = true;
  for (RunResult& run : candidate) run.cases.pop_back();
  RunnerResult& wrong = candidate[4].cases[2].strategies[0];
  wrong.status = Status::verify_failed;
  wrong.measurements.clear();  // nothing was timed
  Comparison c = compare(base, candidate, options_of());
  CHECK(verdicts(c) == "INVALID INVALID MISSING NEW ");
  CHECK(c.cells[0].judgement.reason == "candidate_invalid");
  CHECK_FALSE((c.cells[0].tests || c.geomean_change_pct));
  c = compare(candidate, base, options_of());
  CHECK(verdicts(c) == "MISSING INVALID INVALID NEW ");
  CHECK(c.cells[1].judgement.reason == "base_invalid");
  // What was skipped is as good as absent.
  for (RunResult& run : base) run.cases[0].strategies[0].status = Status::skipped;
  for (RunResult& run : base) run.cases[0].strategies[0].measurements.clear();
  CHECK(verdicts(compare(base, candidate, options_of())) == "INVALID MISSING NEW INVALID ");
  CHECK(compare({}, {}, options_of()).cells.empty());
}

TEST_CASE("the method says which test is reported and which interval decides") {
  const auto base = runs_of({1000, 2000}), candidate = runs_of({1000, 2200});
  const auto by = [&](CompareMethod method) {
    CompareOptions options = options_of();
    options.method = method;
    return compare(base, candidate, options);
  };
  const Comparison usual = by(CompareMethod::automatic);
  for (const CompareMethod method :
       {CompareMethod::mwu, CompareMethod::welch, CompareMethod::student}) {
    const Comparison c = by(method);
    CHECK(c.cells[1].tests.value().chosen == to_string(method));
    CHECK(c.cells[1].judgement.ci_lo_pct == usual.cells[1].judgement.ci_lo_pct);
  }
  CHECK(by(CompareMethod::mwu).cells[1].tests->p == Approx(2 / 252.));  // all above all, of 10 in 5
  CHECK_FALSE(by(CompareMethod::interval).cells[1].tests);
  const Comparison drawn = by(CompareMethod::bootstrap);
  CHECK(drawn.cells[1].tests.value().chosen == usual.cells[1].tests.value().chosen);
  CHECK(*drawn.cells[1].judgement.ci_lo_pct > *usual.cells[1].judgement.ci_lo_pct);
  for (const Comparison* c : {&usual, &drawn}) CHECK(verdicts(*c) == "SAME SLOWER ");
}

TEST_CASE("a change below the least effect is none, and is not the same either") {
  CompareOptions options = options_of();
  options.min_effect_pct = 12;
  const Comparison c = compare(runs_of({1000, 2000, 3000}), runs_of({1000, 2200, 3600}), options);
  CHECK(verdicts(c) == "SAME AMBIGUOUS SLOWER ");
  CHECK(c.cells[1].judgement.reason == "small_effect");
  CHECK_THAT(summary_line(c), ContainsSubstring("least effect 12%"));
}

std::vector<RunResult> on_device(std::vector<RunResult> runs, int ordinal, const char* name) {
  for (RunResult& run : runs) {
    run.id += "-on-" + std::to_string(ordinal);
    run.devices[0].device.ordinal = ordinal;
    run.devices[0].name = name;
  }
  return runs;
}

TEST_CASE("paired devices are compared with each other, and with no other") {
  auto base = on_device(runs_of({1000}), 0, "old"), candidate = on_device(runs_of({500}), 3, "new");
  for (const RunResult& run : on_device(runs_of({2000}), 1, "old")) base.push_back(run);
  for (const RunResult& run : on_device(runs_of({2200}), 1, "new")) candidate.push_back(run);
  CompareOptions options = options_of();
  options.device_pairs = {{"0", "3"}, {"1", "1"}};
  Comparison c = compare(base, candidate, options);
  CHECK(verdicts(c) == "FASTER SLOWER ");
  CHECK((c.cells[0].base.count == 5 && *c.cells[0].base.median == 1000));
  CHECK(c.label(c.cells[1]) == "linear " + c.cells[1].point + " (1:1)");
  CHECK((c.base_device != c.candidate_device && !c.has_device_mismatch()));
  CHECK(exit_code_of(c, parse_fail_on("device-mismatch")) == kSuccess);
  // By name; what failed on one device has not failed on the other.
  base[7].cases[0].strategies[0].status = Status::failed;
  base[7].cases[0].strategies[0].measurements.clear();
  options.device_pairs = {{"0", "new"}, {"1", "new"}};
  c = compare(base, candidate, options);
  CHECK((c.cells[0].candidate.count == 10 && c.cells[1].candidate.count == 10));
  CHECK(c.cells[0].judgement.verdict != Verdict::invalid);
  CHECK(c.cells[1].judgement.verdict == Verdict::invalid);
  CHECK(json::parse(compare_json(c, {}))["rows"][1]["devices"] ==
        json{{"base", "1"}, {"candidate", "new"}});
  options.device_pairs = {{"0", "3"}, {"nwe", "3"}};
  CHECK_THROWS_AS(compare(base, candidate, options), Error);
}

TEST_CASE("another unit of the same model is no mismatch, but is said") {
  const auto base = runs_of({1000});
  auto candidate = base;
  const std::string one = base[0].devices[0].uuid, other = "GPU-" + std::string(36, 'f');
  CHECK(units_of(base) == std::vector{one});
  CHECK_FALSE(compare(base, candidate, options_of()).has_other_units());
  for (RunResult& run : candidate) run.devices[0].uuid = other;
  const Comparison c = compare(base, candidate, options_of());
  CHECK(c.has_other_units());
  CHECK_FALSE(c.has_device_mismatch());
  CHECK(c.notes ==
        std::vector{"base ran on " + one + ", candidate on " + other + ", of the same model"});
  const json document = json::parse(compare_json(c, {}));
  CHECK(document["base"]["uuids"] == json{one});
  CHECK(document["candidate"]["uuids"] == json{other});
  // Devices of one side by their units, or how those begin.
  CompareOptions options = options_of();
  options.device_pairs = {{one, "GPU-ffff"}};
  CHECK(compare(base, candidate, options).cells.at(0).judgement.verdict == Verdict::same);
  for (const char* none : {"GPU-eeee", "GPU-", "GPU-f"}) {
    options.device_pairs[0].candidate = none;
    CHECK_THROWS_MATCHES(
        compare(base, candidate, options), Error,
        Catch::Matchers::MessageMatches(ContainsSubstring(none) && ContainsSubstring("device")));
  }
  // What is not known is not said.
  for (RunResult& run : candidate) run.devices[0].uuid.clear();
  CHECK(compare(base, candidate, options_of()).notes.empty());
  candidate[0].devices[0].uuid = other;
  candidate[0].devices[0].name = "another model";
  CHECK(compare(base, candidate, options_of()).notes.empty());
}

TEST_CASE("operands that were filled otherwise are said") {
  std::vector<RunResult> base(2), candidate(1);
  for (RunResult* run : {&base[0], &base[1], &candidate[0]}) run->complete = true;
  CHECK(compare(base, candidate, options_of()).notes.empty());
  candidate[0].config.init.dist = "zeros";
  CHECK(compare(base, candidate, options_of()).notes ==
        std::vector<std::string>{"base's operands are uniform, candidate's zeros: values change "
                                 "power, and times with it"});
  base[1].config.init.dist = "zeros";
  CHECK_THAT(compare(base, candidate, options_of()).notes.at(0),
             ContainsSubstring("uniform, zeros, candidate's zeros"));
}

TEST_CASE("exit codes follow --fail-on") {
  const auto code = [](const std::vector<double>& candidate, const std::string& fail_on,
                       int runs = 5) {
    const auto base = runs_of({1000, 2000}, runs);
    return exit_code_of(compare(base, runs_of(candidate, runs), options_of()),
                        parse_fail_on(fail_on));
  };
  CHECK(code({1000, 2000}, "regression,invalid") == kSuccess);
  CHECK(code({1000, 2100}, "regression,invalid") == kRegression);
  CHECK(code({1000, 2100}, "none") == kSuccess);
  CHECK(code({1000, 1500}, "regression,missing,invalid,inconclusive") == kSuccess);
  CHECK(code({1000}, "regression") == kSuccess);
  CHECK(code({1000}, "missing") == kRegression);
  CHECK(code({1000, 2000}, "inconclusive", 1) == kInconclusive);
  CHECK(code({1000, 2200}, "inconclusive,regression", 3) == kRegression);  // before inconclusive
  CHECK(code({1000, 2000}, "none", 1) == kSuccess);
  CHECK(code({}, "regression") == kNothingRan);
  CHECK_THROWS_AS(parse_fail_on("regresion"), Error);
  CHECK_THROWS_AS(parse_fail_on(""), Error);
  auto elsewhere = runs_of({1000, 2000});
  elsewhere[0].devices[0].num_multiprocessors = 114;
  const Comparison c = compare(runs_of({1000, 2000}), elsewhere, options_of());
  CHECK(c.base_device != c.candidate_device);
  CHECK(exit_code_of(c, parse_fail_on("device-mismatch")) == kRegression);
  CHECK(exit_code_of(c, parse_fail_on("regression")) == kSuccess);
}

Comparison hostile() {
  auto base = runs_of({1000, 2000, 3000}), candidate = runs_of({1000, 2400, 3000}, 5);
  for (auto* side : {&base, &candidate}) {
    for (RunResult& run : *side) {
      for (CaseResult& c : run.cases) c.strategies[0].name = "a|b<c>&\"d\"%\n::error,e:\x1b";
    }
  }
  for (RunResult& run : candidate) {
    run.cases.pop_back();
    run.config.init.dist = "<|%>";
  }
  return compare(base, candidate, options_of());
}

TEST_CASE("every format says what is slower, and escapes what it holds") {
  const Comparison c = hostile();
  const FailOn fail_on;
  const std::string text = compare_text(c, {120, false, false, true});
  CHECK_THAT(text,
             ContainsSubstring("SLOWER, severe") && ContainsSubstring("+20.0% [+19.7, +20.3]"));
  CHECK_THAT(text, ContainsSubstring("3 cells: 1 SLOWER, 1 SAME, 1 MISSING") &&
                       ContainsSubstring("wbench run --op linear"));
  CHECK_THAT(text, !ContainsSubstring("\x1b"));
  const std::string md = compare_markdown(c, {});
  CHECK_THAT(md, ContainsSubstring("a\\|b") && ContainsSubstring("| SLOWER, severe |"));
  CHECK_THAT(md, ContainsSubstring("\n- base's operands are normal, candidate's ") &&
                     ContainsSubstring("\\|%") && !ContainsSubstring("<|%>"));
  const std::string github = compare_github(c, fail_on);
  CHECK_THAT(github, ContainsSubstring("::error title=linear a|b<c>&\"d\"%25 %3A%3Aerror%2Ce%3A"));
  CHECK_THAT(github, ContainsSubstring("::warning title="));  // missing, not in --fail-on
  CHECK_THAT(github, ContainsSubstring("::notice title=wbench compare::base's operands are normal, "
                                       "candidate's <|%25>: "));
  CHECK(std::count(github.begin(), github.end(), '\n') == 4);
  const std::string junit = compare_junit(c, fail_on);
  CHECK_THAT(junit, ContainsSubstring("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  CHECK_THAT(junit, ContainsSubstring("a|b&lt;c&gt;&amp;&quot;d&quot;%") &&
                        ContainsSubstring("<failure type=\"SLOWER\""));
}

TEST_CASE("the JSON document holds all, and no NaN") {
  const std::string text = compare_json(hostile(), {});
  CHECK_THAT(text, !ContainsSubstring("nan") && !ContainsSubstring("inf\""));
  const json document = json::parse(text);
  CHECK(document["schema"] == json{{"name", "wbench.compare"}, {"version", "1.8.0"}});
  CHECK(document["method"]["threshold_pct"] == 1.5);
  CHECK(document["method"]["better"] == "lower");
  CHECK(document["summary"]["counts"]["SLOWER"] == 1);
  CHECK(document["gate"] == json{{"tripped", true}, {"rules", {"regression", "invalid"}}});
  CHECK(document["exit_code"] == 4);
  const json& row = document["rows"][1];
  CHECK(row["status"] == "SLOWER");
  CHECK(row["severity"] == "severe");
  CHECK(row["change_pct"] == Approx(20));
  CHECK(row["tests"]["effect"] == "large");
  CHECK(row["is_significant"] == true);
  CHECK(document["rows"][2]["status"] == "MISSING");
  CHECK(document["rows"][2]["change_pct"].is_null());
}

TEST_CASE("the command compares folders and files") {
  const Store store;
  store.put("base", runs_of({1000, 2000}));
  store.put("same", runs_of({1001, 2001}));
  store.put("slow", runs_of({1000, 2300}));
  auto other = runs_of({1000, 2000});
  for (RunResult& run : other) run.devices[0].name = "NVIDIA B200";
  store.put("other", other);
  CHECK(store.compare("base same").code == kSuccess);
  const Outcome slow = store.compare("base slow");
  CHECK(slow.code == kRegression);
  CHECK_THAT(slow.out, ContainsSubstring("SLOWER, moderate") && !ContainsSubstring(" SAME\n"));
  CHECK_THAT(store.compare("base slow", "--all").out, ContainsSubstring("SAME\n"));
  CHECK(store.compare("base slow", "--fail-on none").code == kSuccess);
  CHECK(store.compare("base slow", "--threshold 20%").code == kSuccess);
  CHECK(store.compare("base slow", "--noise-floor 20%").code == kSuccess);
  CHECK(store.compare("base slow", "--metric flops_per_s").code == kRegression);
  CHECK(store.compare("slow base").code == kSuccess);
  // One run a side: ranges, and a floor from elsewhere.
  const Outcome lone = store.compare("base/0.json slow/0.json");
  CHECK(lone.code == kSuccess);
  CHECK_THAT(lone.out, ContainsSubstring("noise floor unknown") &&
                           ContainsSubstring("AMBIGUOUS: unknown_noise"));
  CHECK(store.compare("base/0.json slow/0.json", "--noise-floor 1%").code == kRegression);
  CHECK(store.compare("base/0.json same/0.json", "--fail-on inconclusive").code == kInconclusive);
  const Outcome itself = store.compare("base base");
  CHECK(itself.code == kUsage);
  CHECK_THAT(itself.err, ContainsSubstring("base and candidate are the same runs, "));
  const Outcome mismatch = store.compare("base other");
  CHECK(mismatch.code == kEnvironment);
  CHECK_THAT(mismatch.err, ContainsSubstring("H200") && ContainsSubstring("B200"));
  CHECK(store.compare("base other", "--ignore-device").code == kSuccess);
  CHECK(store.compare("base other", "--ignore-device --fail-on device-mismatch").code ==
        kRegression);
  CHECK(store.compare("base other", "--pair-devices 1:1").code == kSuccess);
  CHECK(store.compare("base slow", "--min-effect 20%").code == kSuccess);
  CHECK(store.compare("base slow", "--method bootstrap").code == kRegression);
  const std::string history = "--noise-floor history --store " + (store.path / "h").string();
  CHECK_THAT(store.compare("base slow", history).err, ContainsSubstring("there is no history"));
  // The candidate's own runs say nothing of the noise before them.
  const auto kept = open_history((store.path / "h").string());
  for (int i = 0; i < 3; ++i) {
    RunResult run = run_of({1000, i == 2 ? 4000. : 2000. + 200 * i});
    run.id = i == 2 ? runs_of({1000}).front().id + "-slow" : "before-" + std::to_string(i);
    kept->add(record_of(consistent(run), std::to_string(i)));
  }
  CHECK_THAT(store.compare("base slow", history).out,
             ContainsSubstring("0.317% by the runs, of no cell by the"));
  RunResult third = run_of({1000, 2400});
  third.id = "before-3";
  kept->add(record_of(consistent(third), "3"));
  const Outcome noisy = store.compare("base slow", history);
  CHECK(noisy.code == kSuccess);
  CHECK_THAT(noisy.out, ContainsSubstring("noise floor by the history\n") &&
                            ContainsSubstring("AMBIGUOUS: noise_floor"));
  // It is taken by itself, too.
  CHECK_THAT(store.compare("base slow", "--store " + (store.path / "h").string()).out,
             ContainsSubstring("AMBIGUOUS: noise_floor"));
  CHECK_THAT(store.compare("base/0.json slow/0.json", "--store " + (store.path / "h").string()).out,
             ContainsSubstring("noise floor by the history\n"));
  const std::string file = (store.path / "c.json").string();
  const Outcome written = store.compare("base slow", "--format json -o " + file);
  CHECK(written.code == kRegression);
  CHECK(json::parse(read_file(file))["exit_code"] == kRegression);
  CHECK(json::parse(store.compare("base slow", "--format json").out) ==
        json::parse(read_file(file)));
}

TEST_CASE("where no cell could be judged, that and what would help is said") {
  const Store store;
  store.put("base", runs_of({1000, 2000}));
  store.put("slow", runs_of({1000, 2200}));
  const std::string lone = "base/0.json slow/0.json", floor = "--noise-floor runs ";
  const Outcome few = store.compare(lone, floor);
  CHECK(few.code == kSuccess);  // 5 is asked for
  CHECK_THAT(few.err, ContainsSubstring("no cell could be judged: runs of base 1, of candidate 1, "
                                        "where it takes 5 (run --repeat 5") &&
                          ContainsSubstring("5 with --fail-on inconclusive\n"));
  CHECK_THAT(few.out, !ContainsSubstring("no cell could be judged"));
  CHECK(store.compare(lone, floor + "--fail-on inconclusive").code == kInconclusive);
  // Enough runs, and changes that are no larger than noise.
  CHECK_THAT(store.compare("base slow", "--noise-floor 20%").err,
             !ContainsSubstring("no cell"));  // the first is the SAME
  store.put("changed", runs_of({1100, 2200}));
  CHECK_THAT(store.compare("base changed", "--noise-floor 20%").err,
             ContainsSubstring("no cell could be judged: more runs narrow the intervals"));
  CHECK_THAT(store.compare("base changed").err, !ContainsSubstring("no cell"));
}

TEST_CASE("a run compares itself with a result as compare would") {
  const test::TemporaryFolder folder;
  REQUIRE(wbench("run " + kTiny + "--json base.json").code == kSuccess);
  const Outcome run = wbench("run " + kTiny + "--json new.json --compare base.json --fail-on none");
  CHECK(run.code == kSuccess);
  const Outcome same = wbench("compare base.json new.json --color never --fail-on none");
  CHECK(run.out.ends_with("\n\n" + same.out));
  // Ten times as fast as it was: a change that no machine's noise hides.
  RunResult base = load_result("base.json");
  for (CaseResult& c : base.cases) {
    for (auto* group : {&c.strategies, &c.baselines}) {
      for (RunnerResult& r : *group) {
        for (Measurement& m : r.measurements) {
          for (double& ns : m.samples_ns) ns /= 100;
          m.below_resolution = false;
          m.stats = describe_samples(m.samples_ns, m.samples_round);
        }
      }
    }
    make_consistent(c);
  }
  write_file("fast.json", to_json(base).dump());
  // One run a side: what runs differ by has to be said, or be in the history.
  CHECK(wbench("run " + kTiny + "--compare fast.json").code == kSuccess);
  const Outcome slow = wbench("run " + kTiny + "--compare fast.json --noise-floor 5%");
  CHECK(slow.code == kRegression);
  CHECK_THAT(slow.out, ContainsSubstring("SLOWER"));
  CHECK(wbench("run " + kTiny + "--compare fast.json --fail-on invalid").code == kSuccess);
  const Outcome document = wbench("run " + kTiny + "--json - --compare fast.json --noise-floor 5%");
  CHECK(document.code == kRegression);
  CHECK(json::parse(document.out).at("run").at("exit_code") == kSuccess);
  // The last run before this one, although this one is saved.
  REQUIRE(wbench("history add fast.json").code == kSuccess);
  CHECK(wbench("run " + kTiny + "-s --compare @last --noise-floor 5%").code == kRegression);
  CHECK(wbench("run " + kTiny + "--compare @last --fail-on none").code == kSuccess);
  // Nothing is measured where there is nothing to compare with.
  CHECK(wbench("run " + kTiny + "--json x.json --compare absent.json").code == kRuntimeError);
  CHECK(wbench("run " + kTiny + "--json x.json --compare @absent").code == kUsage);
  CHECK(wbench("run " + kTiny + "--json x.json --compare base.json --fail-on x").code == kUsage);
  CHECK(wbench("run " + kTiny + "--json x.json --compare base.json --threshold x").code == kUsage);
  CHECK(wbench("run " + kTiny + "--json x.json --threshold 2%").code == kUsage);
  const Outcome other = wbench("run --op linear --n 3 --batch 2 --d 8" + kShort +
                               "--json x.json --fail-on none --compare base.json");
  CHECK(other.code == kNothingRan);
  CHECK(other.err ==
        "wbench: --compare base.json: no case is in both: this run has 1 case, linear n=3 batch=2 "
        "d=8; the base has 1 case, linear n=2 batch=2 d=8\n");
  REQUIRE(wbench("run " + kTiny + "--strategy wide --json wide.json").code == kSuccess);
  const Outcome rest = wbench("run " + kTiny + "--skip wide --json x.json --compare wide.json");
  CHECK(rest.code == kNothingRan);
  RunResult elsewhere = load_result("base.json");
  elsewhere.devices.at(0).name = "another";
  write_file("elsewhere.json", to_json(elsewhere).dump());
  const Outcome moved = wbench("run " + kTiny + "--json x.json --compare elsewhere.json");
  CHECK(moved.code == kEnvironment);
  CHECK_THAT(moved.err, ContainsSubstring("--compare elsewhere.json: base ran on another, "));
  for (CaseResult& c : base.cases) {
    for (RunnerResult& r : c.strategies) r.status = Status::failed, r.measurements.clear();
  }
  write_file("failed.json", to_json(base).dump());
  CHECK_THAT(wbench("run " + kTiny + "--compare failed.json --fail-on none").out,
             ContainsSubstring("sequential"));
  CHECK_THAT(rest.err, ContainsSubstring("nothing of a case is in both: this run measures "
                                         "sequential (cpu); the base has wide (cpu)"));
  CHECK(!std::filesystem::exists("x.json"));
}

TEST_CASE("wrong arguments of compare are usage errors") {
  const Store store;
  store.put("base", runs_of({1000}));
  store.put("other", runs_of({1000}));
  std::filesystem::create_directories(store.path / "empty");
  for (const char* options :
       {"--metric tme_ns", "--threshold 0", "--threshold x", "--alpha 2", "--noise-floor -1%",
        "--fail-on regresion", "--format xml", "--min-effect -1%", "--method anova",
        "--pair-devices 0", "--pair-devices 0:1:2", "--pair-devices 0:nothing"}) {
    INFO(options);
    CHECK(store.compare("base other", options).code == kUsage);
  }
  CHECK_THAT(store.compare("base other", "--noise-floor hist").err,
             ContainsSubstring("\"hist\", expected auto, runs, history, none or a percentage"));
  CHECK(store.compare("base").code == kUsage);
  CHECK(store.compare("base empty").code == kUsage);
  CHECK(store.compare("base absent.json").code == kRuntimeError);
  write_file(store.path / "base" / "z.json", "{}");
  CHECK_THAT(store.compare("base other").err, ContainsSubstring("z.json: result: "));
}

}  // namespace
}  // namespace wide::bench
