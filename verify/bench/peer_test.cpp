// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Other programs beside us: verify/bench/peer/fake_peer.py, good and bad, under `run` and `verify`.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <fstream>
#include <sstream>

#include "bench/cli/cli.hpp"
#include "bench/document/result_json.hpp"
#include "bench/peer/line_process.hpp"
#include "bench/peer/peer.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/contender.hpp"
#include "bench/run/peer_calls.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/runner_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

const std::string kPeer = "python3 " WIDE_SOURCE_DIR "/verify/bench/peer/fake_peer.py";
const std::string kCase = " --op pointwise --n 2 --batch 3 --d 5 --function hardswish" + kShort;

/// As the command line has it, but for a peer's, which has spaces.
Outcome with_peers(const std::string& line, const std::vector<std::string>& commands) {
  std::istringstream stream(line);
  std::vector<std::string> words{"wbench"};
  for (std::string word; stream >> word;) words.push_back(word);
  for (const std::string& command : commands) {
    words.emplace_back("--peer");
    words.push_back(command);
  }
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int code = wbench_main(static_cast<int>(argv.size()), argv.data(), out, err);
  set_interrupted(false);
  return {code, out.str(), err.str()};
}

catalog::Case hardswish_of(int64_t num_members) {
  const std::vector<std::pair<std::string, catalog::AxisValue>> axes{
      {"n", num_members},
      {"batch", int64_t{3}},
      {"d", int64_t{5}},
      {"function", std::string("hardswish")}};
  return catalog::make_case(catalog::find_primitive("pointwise"), axes);
}

RunResult result_with(const std::string& command, const std::vector<int64_t>& members = {2}) {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("pointwise");
  RunPlan plan(Context::cpu({.num_threads = 1, .allocator = {}}));
  Peer peer(command, plan.context.device(), 1);
  plan.config = short_config();
  plan.config.min_samples = plan.config.max_samples = 60;
  plan.calibration = given_calibration();
  plan.baselines = {Baseline::loop};
  plan.peers = {&peer};
  std::vector<catalog::Case> cases;
  for (const int64_t n : members) cases.push_back(hardswish_of(n));
  plan.work = {{&spec, cases}};
  RunResult result;
  run_plan(plan, result);
  return result;
}

CaseResult case_with(const std::string& how) {
  return result_with(kPeer + " --be '" + how + "'").cases.at(0);
}

const RunnerResult& named(const std::vector<RunnerResult>& runners, const std::string& name) {
  for (const RunnerResult& r : runners) {
    if (r.name == name) return r;
  }
  FAIL("there is no " + name);
  return runners[0];
}

TEST_CASE("a peer's strategies are baselines, checked and timed in the same rounds") {
  const CaseResult c = case_with("");
  const RunnerResult& right = named(c.baselines, "fake:right");
  CHECK(right.peer == "fake 1.0");
  CHECK(right.explain == "hardswish, right");
  CHECK(right.status == Status::ok);
  CHECK((right.verify.before == "pass" && right.verify.after == "pass"));
  CHECK(right.verify.elements_compared == 2 * 3 * 5);
  REQUIRE(right.measurements.size() == 1);
  const Measurement& m = right.measurements[0];
  CHECK((m.regime == Regime::cpu && m.timer == "host" && m.iters_per_sample == 7));
  CHECK((m.stats.median_ns >= 200000 && m.stats.median_ns <= 200002));
  CHECK(m.samples_round.back() >= 2);
  const RunnerResult& loop = named(c.baselines, "loop");
  CHECK(loop.peer.empty());
  // Every block lies in the order of all samples of the case.
  CHECK(m.samples_order.back() > loop.measurements.at(0).samples_order.front());
  CHECK(loop.measurements[0].samples_order.back() > m.samples_order.front());
}

TEST_CASE("what a peer gets wrong is not timed, before or after") {
  const CaseResult c = case_with("");
  const RunnerResult& wrong = named(c.baselines, "fake:wrong");
  CHECK(wrong.status == Status::verify_failed);
  CHECK(wrong.measurements.empty());
  const RunnerResult& late = named(c.baselines, "fake:late");
  CHECK(late.status == Status::verify_failed);
  CHECK((late.verify.before == "pass" && late.verify.after == "fail"));
  CHECK(c.status == Status::ok);  // which speaks of us
  const RunnerResult& near = named(c.baselines, "fake:near");
  CHECK(near.status == Status::ok);
  CHECK((*near.verify.worst_error_ratio > 1 && *near.verify.worst_error_ratio < 16));
  const RunnerResult& compile = named(c.baselines, "fake:compile");
  CHECK(compile.status == Status::skipped);
  CHECK(compile.reason == "there is no compiler");
}

TEST_CASE("strategies are compared with the fastest peer that is right") {
  const CaseResult c = case_with("");
  int against_peers = 0;
  for (const Speedup& s : c.speedups) {
    if (s.baseline != Baseline::peer) {
      CHECK(s.peer.empty());
      continue;
    }
    ++against_peers;
    CHECK(s.peer == "fake:quick");
    CHECK(s.pairs >= 3);
    const double own = named(c.strategies, s.strategy).measurements.at(0).stats.median_ns;
    CHECK(*s.speedup_ratio > 0.2 * 1000 / own);
    CHECK(*s.speedup_ratio < 5 * 1000 / own);
  }
  CHECK(against_peers == static_cast<int>(c.strategies.size()));
}

TEST_CASE("tables, summaries, pages and rows know peers") {
  const test::TemporaryFolder folder;
  const Outcome o = with_peers(
      "run -v --explain --html page.html --csv rows.csv --json r.json --events e.jsonl" + kCase,
      {kPeer});
  CHECK(o.code == kSuccess);
  const RunResult begun = load_result("begun.jsonl");  // as it was in the first case
  CHECK((begun.cases.empty() && !begun.complete && begun.devices.size() == 1));
  CHECK(begun.calibration != Calibration());
  CHECK_THAT(o.out, ContainsSubstring("(fake:right)") && ContainsSubstring("vs peer") &&
                        ContainsSubstring("cpu vs peer: crossover N") &&
                        ContainsSubstring("--peer 'python3 ") &&
                        !ContainsSubstring("--baseline fake"));
  const std::vector<RunnerResult> baselines = load_result("r.json").cases.at(0).baselines;
  CHECK(named(baselines, "loop").peak_device_bytes);
  CHECK_FALSE(named(baselines, "fake:right").peak_device_bytes);  // its memory is its own
  CHECK_THAT(read_file("page.html"), ContainsSubstring("speedup vs peer, regime cpu"));
  CHECK_THAT(read_file("rows.csv"), ContainsSubstring("speedup_peer,fastest_peer,peer") &&
                                        ContainsSubstring("fake:quick"));
}

TEST_CASE("a peer is timed in every regime") {
  for (const Regime regime : kRegimes) CHECK(is_partner(Baseline::peer, regime));
}

/// Runs use(calls) on a peer's calls of a small case.
void with_calls(const std::string& how, const std::function<void(PeerCalls)>& use) {
  const Context context = Context::cpu({.num_threads = 1, .allocator = {}});
  const catalog::Case point = hardswish_of(2);
  const auto workload = catalog::find_primitive("pointwise").make_workload(context, point, {});
  Peer peer(kPeer + " --be '" + how + "' --log log", context.device(), 1);
  (void)peer.prepare(point, context, Stream::cpu(), *workload, 0);
  use(PeerCalls(peer, {.name = "right", .explain = "", .unsupported = ""}, *workload, Dtype::fp32));
}

/// What a peer's samplers say of the calls that a sample runs, by regime.
std::vector<int64_t> calls_run_by(const std::string& how) {
  std::vector<int64_t> all;
  with_calls(how, [&](PeerCalls calls) {
    for (const Regime regime : {Regime::cpu, Regime::stream, Regime::graph, Regime::cold}) {
      Sampling sampling;
      sampling.timer_quantum_ns = 1024;
      sampling.cold = {Cache::flush, 2, 70, 20, 20};  // seven copies
      all.push_back(calls.sampler(regime, sampling)->calls_run_per_sample());
    }
  });
  return all;
}

/// Copies that the calls of a peer's cold sample take.
int64_t copies_taken_by(const std::string& how, const Sampling& sampling) {
  int64_t copies = 0;
  with_calls(how, [&](PeerCalls calls) {
    copies = calls.sampler(Regime::cold, sampling)->buffers_rotated();
  });
  return copies;
}

TEST_CASE("what a sample draws is that of the calls it runs, if the peer says how many") {
  const test::TemporaryFolder folder;
  using Calls = std::vector<int64_t>;
  CHECK(calls_run_by("counts") == Calls{7, 7, 0, 0});
  CHECK(calls_run_by("counts 14") == Calls{14, 14, 14, 14});
  CHECK(calls_run_by("counts 0") == Calls{0, 0, 0, 0});
  const std::string reason = "calls_run_per_sample is 3, expected 0, or iters_per_sample or more";
  CHECK_THROWS_MATCHES(calls_run_by("counts 3"), Error, MessageMatches(ContainsSubstring(reason)));
}

TEST_CASE("a peer's samples are as long as ours in the same regime") {
  const test::TemporaryFolder folder;
  (void)calls_run_by("counts");
  const std::string log = read_file("log");
  // Of a graph 1000 steps of the clock.
  for (const char* asked : {"sampler cpu 100000.0", "sampler stream 1000000.0",
                            "sampler graph 1024000.0", "sampler cold 1024000.0"})
    CHECK_THAT(log, ContainsSubstring(asked));
}

TEST_CASE("a peer's cold calls have as many copies as ours") {
  const test::TemporaryFolder folder;
  Sampling sampling;
  sampling.cold = {Cache::rotate, 2, 70, 20};
  CHECK(copies_taken_by("counts", sampling) == 7);
  CHECK_THAT(read_file("log"), ContainsSubstring("sampler cold 200000.0 rotate 7"));
  sampling.cold.touched_bytes = 40;
  CHECK_THROWS_MATCHES(copies_taken_by("counts", sampling), Error,
                       MessageMatches(ContainsSubstring("iters_per_sample is 7, expected a "
                                                        "multiple of 4 copies")));
  sampling.cold = {Cache::flush, 2, 70, 20, 20};
  CHECK(copies_taken_by("counts", sampling) == 7);
  CHECK_THAT(read_file("log"), ContainsSubstring("sampler cold 200000.0 flush 7"));
  CHECK_THROWS_MATCHES(copies_taken_by("alone", sampling), Error,
                       MessageMatches(ContainsSubstring("iters_per_sample is 1, expected 2 of 7 "
                                                        "copies or more")));
  sampling.cold.touched_bytes = 100;  // the flush's calls are single, and so is a peer's
  sampling.cold.l2_bytes = 100;
  CHECK(copies_taken_by("alone", sampling) == 1);
  sampling.cold = {Cache::flush, 2, 70, 20, 20};
  sampling.cold.touched_bytes = 2;  // behind a flush not all copies have to be taken
  CHECK(copies_taken_by("counts", sampling) == 7);
  CHECK_THAT(read_file("log"), ContainsSubstring("sampler cold 200000.0 flush 28"));
  sampling.cold.touched_bytes = 40;
  CHECK_THROWS_MATCHES(copies_taken_by("counts", sampling), Error,
                       MessageMatches(ContainsSubstring("iters_per_sample is 7, expected at "
                                                        "most 4 copies")));
}

TEST_CASE("a peer beside a GPU has the CPU's threads") {
  DeviceInfo device;
  device.device = {DeviceType::cuda, 0};
  device.num_multiprocessors = 100'000;
  CHECK(cpu_threads_beside(device) == Context::cpu().info().num_multiprocessors);
  CHECK(cpu_threads_beside(Context::cpu({.num_threads = 3, .allocator = {}}).info()) == 3);
}

TEST_CASE("verify checks peers, hostile operands are for ours") {
  const Outcome o =
      with_peers("verify --adversarial --op pointwise --n 2 --batch 3 --d 5 --device cpu", {kPeer});
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("(fake:right)") && ContainsSubstring("(fake:wrong)"));
}

TEST_CASE("a peer that refuses a case does it no harm") {
  const CaseResult c = case_with("refuses");
  const RunnerResult& fake = named(c.baselines, "fake");
  CHECK(fake.status == Status::skipped);
  CHECK(fake.reason == "pointwise is not known");
  CHECK(fake.peer == "fake 1.0");
  CHECK(c.status == Status::ok);
}

TEST_CASE("what is no answer fails the peer and nothing else") {
  struct Bad {
    const char *how, *reason;
  };
  const Bad bad =
      GENERATE(Bad{"short", "\"got\" has 116 bytes of F32, expected [3, 5] of F32"},
               Bad{"half", "expected 60 bytes for F16"}, Bad{"forgets", "got.safetensors"},
               Bad{"sundial", "timer is \"sundial\""}, Bad{"negative", "time_ns is -1"},
               Bad{"eternal", "time_ns is 1e+300, expected a time of at most 10^18 ns"},
               Bad{"dies late", "it ended with exit code 4"},
               Bad{"repeats", "another name than an earlier strategy's"},
               Bad{"dies", "it ended with exit code 3"});
  INFO(bad.how);
  const CaseResult c = case_with(bad.how);
  CHECK(c.status == Status::ok);
  int failed = 0;
  for (const RunnerResult& r : c.baselines) {
    if (r.peer.empty() || r.status != Status::failed) continue;
    ++failed;
    if (failed == 1) CHECK_THAT(r.reason, ContainsSubstring(bad.reason));
  }
  CHECK(failed >= 1);
  for (const RunnerResult& r : c.strategies) CHECK(r.status == Status::ok);
  CHECK(named(c.baselines, "loop").status == Status::ok);
}

TEST_CASE("after one answer that is none a peer's other strategies fail with it") {
  const CaseResult c = case_with("mumbles");
  const RunnerResult &right = named(c.baselines, "fake:right"),
                     &quick = named(c.baselines, "fake:quick");
  CHECK((right.status == Status::failed && quick.status == Status::failed));
  CHECK_THAT(right.reason + "; " + quick.reason,
             ContainsSubstring("\"NaN\", expected an answer to \"sample\"") &&
                 ContainsSubstring("it was ended, as its last answer was none"));
  for (const RunnerResult& r : c.strategies) CHECK(r.status == Status::ok);
}

TEST_CASE("a peer that has ended is started again for the next case") {
  const test::TemporaryFolder folder;
  const RunResult result = result_with(kPeer + " --be 'dies once' --log log", {2, 3});
  REQUIRE(result.cases.size() == 2);
  CHECK(named(result.cases[0].baselines, "fake").status == Status::failed);
  CHECK(named(result.cases[1].baselines, "fake:right").status == Status::ok);
}

TEST_CASE("cases end before the next begins, and the peer with the run") {
  const test::TemporaryFolder folder;
  const std::string log = "log";
  (void)result_with(kPeer + " --log " + log, {2, 3});
  std::ifstream file(log);
  std::string all;
  for (std::string word; file >> word;) {
    if (word == "hello" || word == "prepare" || word == "forget") all += word + " ";
  }
  CHECK(all == "hello prepare forget prepare forget ");
}

TEST_CASE("what is no peer is said before anything is measured") {
  const auto [command, reason] = GENERATE(
      std::pair<std::string, const char*>{kPeer + " --be babbles",
                                          "expected an answer to \"hello\""},
      std::pair<std::string, const char*>{kPeer + " --be newer", "expected \"wbench.peer 1\""},
      std::pair<std::string, const char*>{kPeer + " --be misnamed", "two words"},
      std::pair<std::string, const char*>{"exit 5", "it ended with exit code 5"},
      std::pair<std::string, const char*>{"no-such-program", "it ended with exit code 127"});
  const Outcome o = with_peers("run" + kCase, {command});
  CHECK(o.code == kEnvironment);
  CHECK_THAT(o.err, ContainsSubstring("--peer: ") && ContainsSubstring(reason));
  CHECK(o.out.empty());
}

TEST_CASE("two peers of one name cannot be told apart") {
  const Outcome o = with_peers("run" + kCase, {kPeer, kPeer});
  CHECK(o.code == kEnvironment);
  CHECK_THAT(o.err, ContainsSubstring("two are called fake"));
}

TEST_CASE("a program that says nothing is ended") {
  LineProcess hung("sleep 1000");
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_MATCHES(hung.ask("hello", 0.2), Error,
                       MessageMatches(ContainsSubstring("sleep 1000: no answer for 0 s")));
  CHECK_FALSE(hung.is_running());
  CHECK_THROWS_AS(hung.ask("hello", 0.2), Error);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  CHECK(passed.count() < 10);
}

TEST_CASE("an interrupted user does not wait for a program that says nothing") {
  LineProcess hung("sleep 1000");
  set_interrupted(true);
  CHECK_THROWS_MATCHES(hung.ask("hello", 600), Error,
                       MessageMatches(ContainsSubstring("interrupted")));
  set_interrupted(false);
}

TEST_CASE("answers may come in pieces, and several at once") {
  LineProcess program(
      "read a; printf 'one'; sleep 0.3; printf '\\ntwo\\n'; read b; cat >/dev/null");
  CHECK(program.ask("a", 10) == "one");
  CHECK(program.ask("b", 10) == "two");
}

}  // namespace

}  // namespace wide::bench
