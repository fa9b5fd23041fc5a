// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Suites: what is shipped, what is refused and how, how entries end and what they add up to.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/command/options.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/suite/outcome.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/schema.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::TemporaryFolder;

constexpr const char* kSchema = "bench/suite/suite.schema.json";

/// A suite on the CPU that takes a moment, of these entries.
std::string suite_of(const std::string& entries) {
  return R"({"schema": {"name": "wbench.suite", "version": "1.0.0"}, "name": "mine",
 "defaults": {"device": "cpu", "axes": {"n": 2, "batch": 2, "d": 8}, "warmup_s": 0, "rounds": 3,
  "min_samples": 3, "max_samples": 6},
 "entries": [)" +
         entries + "]}";
}

std::string refusal(const std::string& text) {
  return test::refusal_of([&] {
    const Suite suite = parse_suite(text, "f.json");
    for (const SuiteEntry& entry : suite.entries) (void)size_of(entry);
  });
}

}  // namespace

TEST_CASE("shipped suites are valid, fit the schema and are listed") {
  const std::string listing = wbench("suite list").out;
  const std::vector<ShippedSuite> shipped = shipped_suites();
  CHECK(shipped.size() >= 4);
  for (const ShippedSuite& suite : shipped) {
    INFO(suite.name);
    CHECK(test::schema_complaint(kSchema, std::string(suite.text)) == "");
    CHECK(parse_suite(suite.text, "").name == suite.name);
    CHECK_THAT(listing, ContainsSubstring(std::string(suite.name)));
  }
  const Outcome o = wbench("suite validate quick ci flash_attention seed_headlines");
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("flash_attention: ok: suite flash_attention, 3 entries, "
                                      "270 cases"));
  const auto listed = nlohmann::json::parse(wbench("suite list --json -").out);
  CHECK(listed.size() == shipped.size());
}

TEST_CASE("an entry takes the defaults, axis by axis, and \"all\" is an entry of every primitive") {
  const Suite suite = parse_suite(suite_of(R"({"op": "linear", "axes": {"n": [4, "8:16:8"]},
    "strategies": ["wide"], "verify": "off", "target_ci": "2%"}, {"op": "softmax,pointwise",
    "name": "second", "preset": "ci"})"),
                                  "f.json");
  REQUIRE(suite.entries.size() == 2);
  const RunOptions& first = suite.entries[0].options;
  CHECK(suite.entries[0].name == "linear");
  CHECK(first.selection.axis_options ==
        std::map<std::string, std::string>{{"n", "4,8:16:8"}, {"batch", "2"}, {"d", "8"}});
  CHECK(first.selection.strategies == "wide");
  CHECK(first.config.verify == "off");
  CHECK(first.config.rounds == 3);
  CHECK(first.target_ci == "2%");
  CHECK(size_of(suite.entries[0]).cases == 3);
  CHECK(suite.entries[1].options.selection.ops == "softmax,pointwise");
  CHECK(suite.entries[1].options.config.verify == "both");
  const Suite all = load_suite("ci");
  REQUIRE(all.entries.size() == catalog::primitives().size());
  CHECK(all.entries[3].name == catalog::primitives()[3]->name);
}

TEST_CASE("an entry can be typed as a run, with all that a suite can say") {
  const Suite suite = parse_suite(suite_of(R"({"op": "linear", "axes": {"n": [4, "8:16:8"]},
    "preset": "ci", "strategies": ["wide", "simt"], "skip": "simt", "baselines": "none",
    "regimes": ["cpu", "stream"], "filter": "n=4 ", "target_ci": "2%", "warmup_s": 1e-7,
    "timeout_s": 2.5, "budget_s": 30, "seed": 9007199254740992, "order_seed": 7, "isolate": true,
    "verify": "before"})"),
                                  "f.json");
  const RunOptions& options = suite.entries.at(0).options;
  CHECK(options.config.isolate);
  const std::vector<std::string> words = run_words(options);
  CHECK(words == std::vector<std::string>{"run",
                                          "--op=linear",
                                          "--preset=ci",
                                          "--batch=2",
                                          "--d=8",
                                          "--n=4,8:16:8",
                                          "--strategy=wide,simt",
                                          "--skip=simt",
                                          "--baseline=none",
                                          "--regime=cpu,stream",
                                          "--filter=n=4 ",
                                          "--device=cpu",
                                          "--rounds=3",
                                          "--min-samples=3",
                                          "--max-samples=6",
                                          "--target-ci=2%",
                                          "--warmup-time=1e-07",
                                          "--timeout=2.5",
                                          "--budget=30",
                                          "--seed=9007199254740992",
                                          "--order-seed=7",
                                          "--verify=before",
                                          "--isolate"});
  // A key more, of which one is no part of a run, wants its word above.
  const auto schema = nlohmann::json::parse(
      read_file(std::string(WIDE_SOURCE_DIR "/") + kSchema))["properties"]["defaults"];
  CHECK(schema["properties"].size() == 19 + 1);
}

TEST_CASE("what is no suite is refused, with what, where and what was expected") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "f.json: not JSON: it is empty"},
      {"[]", "f.json: $ is [], expected an object"},
      {"{\"schema\": {\"name\": \"wbench.suite\"\n oops", "line 2"},
      {std::string(100'000, '['), "nested deeper than"},
      {"\xEF\xBB\xBF{}", "$.schema is missing, expected wbench.suite 1.x.y"},
      {"{\"schema\": 1e999}", "not JSON"},
      {"{\"schema\": NaN}", "not JSON"},
      {R"({"schema": {"name": "wbench.suite", "version": "2.0.0"}})",
       "expected wbench.suite 1.x.y"},
      {R"({"schema": {"name": "wbench.result", "version": "1.0.0"}})", "schema is wbench.result"},
      {suite_of(""), "$.entries is [], expected at least one entry"},
      {suite_of("4"), "$.entries[0] is 4, expected an object"},
      {suite_of("{}"), "$.entries[0].op is missing"},
      {suite_of(R"({"op": "linaer"})"),
       "$.entries[0]: unknown op \"linaer\", did you mean linear?"},
      {suite_of(R"({"op": "linear", "axis": {}})"),
       "$.entries[0]: unknown key \"axis\", did you mean axes?"},
      {suite_of(R"({"op": "linear", "rounds": 5, "rounds": 6})"),
       "$.entries[0].rounds is given twice"},
      {suite_of(R"({"op": "linear", "min_samples": 7})"),
       "$.entries[0]: min_samples is 7, expected at most max_samples, which is 6"},
      {suite_of(R"({"op": "linear"}, {"op": "linear", "preset": "ci"})"),
       "taken by f.json: $.entries[0]"},
      {suite_of(R"({"op": "linear", "name": "../x"})"), "$.entries[0]: name"},
      {suite_of(R"({"op": "all", "name": "x"})"), "named by op"},
      {suite_of(R"({"op": "linear", "axes": {"vocab": 3}})"), "unknown axis \"vocab\""},
      {suite_of(R"({"op": "linear", "axes": {"n": 0}})"), "$.entries[0]: "},
      {suite_of(R"({"op": "linear", "axes": {"n": "1:1000000000"}})"), "$.entries[0]: "},
      {suite_of(R"({"op": "linear", "axes": {"n": "1:1000", "d": "1:1000", "batch": "1:1000"}})"),
       "1000000000 cases, expected at most 1000000"},
      {suite_of(R"({"op": "linear", "axes": {"n": 2.5}})"),
       "$.entries[0].axes.n is 2.5, expected an integer or a word"},
      {suite_of(R"({"op": "linear", "axes": {"n": []}})"), "at least one value"},
      {suite_of(R"({"op": "linear", "preset": "quik"})"), "did you mean quick?"},
      {suite_of(R"({"op": "linear", "strategies": ["simtt"]})"), "did you mean simt?"},
      {suite_of(R"({"op": "linear", "regimes": ["grpah"]})"),
       "$.entries[0].regimes[0] is \"grpah\", expected one of stream, graph, cpu"},
      {suite_of(R"({"op": "linear", "baselines": "lop"})"), "expected one of loop, streams, graph"},
      {suite_of(R"({"op": "linear", "filter": "("})"), "--filter"},
      {suite_of(R"({"op": "linear", "filter": "nothing"})"), "no case matches"},
      {suite_of(R"({"op": "linear", "rounds": 2})"), "an integer from 3 to 10000"},
      {suite_of(R"({"op": "linear", "seed": -1})"), "an integer from 0"},
      {suite_of(R"({"op": "linear", "seed": 9007199254740993})"), "to 9007199254740992"},
      {suite_of(R"({"op": "linear", "budget_s": 0})"),
       "$.entries[0].budget_s is 0, expected a number above 0"},
      {suite_of(R"({"op": "linear", "target_ci": "0%"})"), "expected a percentage"},
      {suite_of(R"({"op": "linear", "thresholds": [{"min": 1}]})"),
       "$.entries[0].thresholds[0].metric is missing"},
      {suite_of(R"({"op": "linear", "thresholds": [{"metric": "time_ms", "max": 1}]})"),
       "did you mean time_ns"},
      {suite_of(R"({"op": "linear", "thresholds": [{"metric": "time_ns"}]})"),
       "one of min and max"},
      {suite_of(R"({"op": "linear", "thresholds": [{"metric": "speedup_ratio", "min": 1}]})"),
       "expected a baseline"},
  }));
  INFO(text.substr(0, 300));
  CHECK_THAT(refusal(text), ContainsSubstring(message));
}

TEST_CASE("a suite cut short anywhere is refused, and nothing worse") {
  const std::string whole =
      suite_of(R"({"op": "linear", "thresholds": [{"metric": "time_ns", "max": 1}]})");
  REQUIRE(refusal(whole) == "nothing was thrown");
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK(refusal(whole.substr(0, size)) != "nothing was thrown");
}

TEST_CASE("an entry that cannot run does not stop the rest, and the worst code wins") {
  TemporaryFolder folder;
  // The first is refused on the CPU, whose regime is another; the last wins nothing to hold
  // against.
  write_file("s.json", suite_of(R"({"op": "linear", "name": "gpu", "regimes": ["stream"]},
    {"op": "linear", "rounds": 6, "thresholds": [{"metric": "time_ns", "max": 1e12}]},
    {"op": "softmax", "axes": {"batch": 3}, "rounds": 6,
     "thresholds": [{"metric": "time_ns", "max": 0.001}]})"));
  REQUIRE(test::schema_complaint(kSchema, read_file("s.json")) == "");
  const Outcome o = wbench("suite run s.json --json out.json --results r -q --color never");
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring("$.entries[0]: --regime"));
  CHECK_THAT(o.out, ContainsSubstring("MISSED softmax: time_ns <= 0.001"));
  CHECK_THAT(o.out, ContainsSubstring("3 entries: 1 missed, 1 ok, 1 refused"));
  CHECK(test::schema_complaint("bench/suite/suite_result.schema.json", read_file("out.json")) ==
        "");
  const auto document = nlohmann::json::parse(read_file("out.json"));
  CHECK(document["exit_code"] == kUsage);
  CHECK(document["entries"][0]["result_file"].is_null());
  CHECK(document["entries"][1]["thresholds"][0]["status"] == "met");
  CHECK(document["totals"]["thresholds"]["missed"] == 1);
  CHECK(document["totals"]["entries_ok"] == 1);
  for (const std::string entry : {"linear", "softmax"}) {
    const RunResult result = load_result("r/" + entry + ".json");
    CHECK(result.cases.size() == 1);
    CHECK(result.cases[0].point.op() == entry);
    CHECK(!result.parent_suite.empty());
    CHECK(result.parent_suite == document["suite"]["name"]);
  }
  // Ceilings are measured once for entries that follow one another.
  CHECK(load_result("r/linear.json").calibration == load_result("r/softmax.json").calibration);
  CHECK(load_result("r/softmax.json").calibration.mem_bw_bytes_per_s > 0);
  const Outcome shown = wbench("suite run s.json -v --entry softmax,linear");
  CHECK(shown.code == kRegression);
  // No entry's budget pays for them.
  CHECK_THAT(shown.err, StartsWith("measuring ceilings\n") && !ContainsSubstring("calibration"));
  CHECK_THAT(wbench("compare r r").err, ContainsSubstring("base and candidate are the same runs"));
}

TEST_CASE(
    "an undecided threshold fails a suite only if it is strict; saved runs are in the history") {
  TemporaryFolder folder;
  write_file("s.json", suite_of(R"({"op": "linear", "thresholds": [
    {"metric": "time_ns", "max": 1, "regime": "graph"}]})"));
  const Outcome o = wbench("suite run s.json --json - --save -q");
  CHECK(o.code == kSuccess);
  const auto document = nlohmann::json::parse(o.out);
  CHECK(document["totals"]["thresholds"]["undecided"] == 1);
  CHECK(std::filesystem::exists(document["entries"][0]["result_file"].get<std::string>()));
  CHECK_THAT(wbench("show @last").out, ContainsSubstring("linear"));
  CHECK(wbench("suite run s.json --strict -q").code == kInconclusive);
}

TEST_CASE("suite command lines that mean nothing are usage errors") {
  const auto [line, message] = GENERATE(table<std::string, std::string>(
      {{"suite run", "0 suites, expected one"},
       {"suite run quick ci", "2 suites, expected one"},
       {"suite run quik", "unknown suite \"quik\", did you mean quick?"},
       {"suite run ci --entry linaer", "did you mean linear"},
       {"suite validate", "expected a file"},
       {"suite validate quik", "did you mean quick?"},
       {"suite list quick", "one too many"},
       {"suite rum", "rum"}}));
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK(wbench("suite run ./no-such.json").code == kRuntimeError);
}

TEST_CASE("a threshold is held by the best strategy, and its interval decides") {
  RunResult result;
  result.cases.resize(1);
  result.cases[0].strategies = {sample_runner("slow", 4000, 2000),
                                sample_runner("fast", 3000, 1500)};
  const double best = 1500;
  const auto reach = [&](const Threshold& t) { return hold(t, result).reach; };
  Threshold t{"time_ns", {}, {}, {}, Regime::graph, ""};
  t.max = best * 1000;
  CHECK(reach(t) == Reach::met);
  t.max = best / 1000;
  CHECK(reach(t) == Reach::missed);
  CHECK_THAT(hold(t, result).worst, ContainsSubstring("graph: fast 1500 ["));
  t.strategy = "slow";
  CHECK_THAT(hold(t, result).worst, ContainsSubstring("graph: slow 2000 ["));
  t.strategy = "";
  t.max = best;
  CHECK(reach(t) == Reach::undecided);
  t.regime = Regime::cpu;
  CHECK(reach(t) == Reach::undecided);
  CHECK_THAT(hold(t, result).worst, ContainsSubstring("nothing was measured"));
}

TEST_CASE("a speedup is held against its baseline, a rate by the other end of time's interval") {
  RunResult result;
  result.cases.resize(1);
  CaseResult& c = result.cases[0];
  c.strategies = {sample_runner("wide", 3000, 1500)};
  c.speedups = {{"wide", Baseline::loop, Regime::stream, 12, 3.0, 2.5, 3.5, "faster"},
                {"wide", Baseline::streams, Regime::stream, 12, 1.0, 0.9, 1.1, "same"}};
  const auto reach = [&](const char* metric, double min, std::optional<Baseline> baseline) {
    return hold({metric, min, {}, baseline, {}, ""}, result).reach;
  };
  CHECK(reach("speedup_ratio", 2.5, Baseline::loop) == Reach::met);
  CHECK(reach("speedup_ratio", 2.6, Baseline::loop) == Reach::undecided);
  CHECK(reach("speedup_ratio", 3.6, Baseline::loop) == Reach::missed);
  CHECK(reach("speedup_ratio", 2.5, Baseline::streams) == Reach::missed);
  CHECK(reach("speedup_ratio", 2.5, Baseline::graph) == Reach::undecided);
  // 61.5 % at the medians, which lie within a thousandth of their intervals' ends.
  CHECK(reach("pct_of_floor", 61, {}) == Reach::met);
  CHECK(reach("pct_of_floor", 61.5, {}) == Reach::undecided);
  CHECK(reach("pct_of_floor", 62, {}) == Reach::missed);
}

TEST_CASE("with fewer than six rounds no threshold is met or missed") {
  RunResult result;
  CaseResult& c = result.cases.emplace_back();
  c.strategies = {sample_runner("wide", 3000, 0)};
  Measurement& m = c.strategies[0].measurements[0];
  c.speedups = {{"wide", Baseline::loop, Regime::stream, 6, 3.0, 2.9, 3.1, "faster"}};
  const Threshold fast{"time_ns", {}, 1e9, {}, {}, ""}, slow{"time_ns", {}, 1, {}, {}, ""};
  const Threshold met{"speedup_ratio", 2, {}, Baseline::loop, {}, ""};
  const Threshold missed{"speedup_ratio", 9, {}, Baseline::loop, {}, ""};
  const auto reaches = [&] {
    std::string all;
    for (const Threshold& t : {fast, slow, met, missed})
      all += std::string(to_string(hold(t, result).reach)) + " ";
    return all;
  };
  m.samples_ns.resize(24);
  m.samples_round.resize(24);  // four each
  CHECK(reaches() == "met missed met missed ");
  m.samples_ns.resize(20);
  m.samples_round.resize(20);
  c.speedups[0].pairs = 5;
  CHECK(reaches() == "undecided undecided undecided undecided ");
  CHECK_THAT(hold(slow, result).worst, ContainsSubstring("] of 5 rounds, expected 6"));
  CHECK_THAT(hold(missed, result).worst, ContainsSubstring("] of 5 rounds, expected 6"));
  // A few rounds of another strategy stand for nothing beside enough of one.
  c.strategies.push_back(sample_runner("other", 4000, 0));
  CHECK_THAT(hold(slow, result).worst, ContainsSubstring("other 4000 ["));
  CHECK(reaches() == "met missed undecided undecided ");
}

TEST_CASE("a suite of too few rounds fails only if it is strict") {
  TemporaryFolder folder;
  write_file("s.json", suite_of(R"({"op": "linear", "rounds": 4, "max_samples": 4, "thresholds": [
    {"metric": "time_ns", "max": 0.001}]})"));
  const Outcome o = wbench("suite run s.json -q --color never");
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("of 4 rounds, expected 6"));
  CHECK(wbench("suite run s.json --strict -q").code == kInconclusive);
}

TEST_CASE("suite statistics: geometric mean and extremes of the fastest strategy") {
  SpeedupStatistics s;
  s.add(2);
  s.add(8);
  SpeedupStatistics all;
  all.add(SpeedupStatistics());
  all.add(s);
  CHECK(all.geomean() == Catch::Approx(4));
  CHECK((all.cases == 2 && all.least == 2 && all.largest == 8));
  CHECK(worse_code(kWrong, kRuntimeError) == kRuntimeError);
  CHECK(worse_code(kSuccess, kNothingRan) == kNothingRan);
  CHECK(worse_code(kInterrupted, kUsage) == kInterrupted);
}

}  // namespace wide::bench
