// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench tune`: which candidate wins on made-up results, and the command from measurement to the
// plan that reads its file.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <functional>
#include <regex>
#include <sstream>
#include <utility>

#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/runner.hpp"
#include "bench/tune/tune.hpp"
#include "host/core/file.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/softmax.hpp"
#include "wide/tuning.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

RunnerResult runner(const std::string& name, double stream_ns, double graph_ns = 0) {
  RunnerResult r;
  r.name = name;
  r.strategy = name.substr(0, name.find(':'));
  if (name.find(':') != std::string::npos) r.policy = name.substr(name.find(':') + 1);
  r.verify.before = r.verify.after = "pass";
  r.verify.elements_compared = 10;
  const auto add = [&](Regime regime, double time_ns) {
    Measurement m;
    m.regime = regime;
    m.stats.median_ns = time_ns;
    if (time_ns > 0) r.measurements.push_back(m);
  };
  add(Regime::stream, stream_ns);
  add(Regime::graph, graph_ns);
  return r;
}

CaseResult result_of(std::vector<RunnerResult> runners) {
  CaseResult result;
  result.strategies = std::move(runners);
  return result;
}

const catalog::PrimitiveSpec& linear() {
  return catalog::find_primitive("linear");
}

TEST_CASE("the fastest, the one behind it, and what they are compared with") {
  RunnerResult automatic = runner("auto", 25);
  automatic.strategy = "cublas_batched";
  const auto tuned = tuned_case(
      result_of({runner("sequential", 40), runner("cublaslt", 20), runner("simt:m16n64", 30),
                 runner("small_m:m8n64", 10), runner("wgmma:m64n128", 15), automatic}),
      linear());
  REQUIRE(tuned);
  CHECK(tuned->winner.name == "small_m:m8n64");
  CHECK((tuned->winner.time_ns == 10 && tuned->strategy == "small_m" && tuned->policy == "m8n64"));
  CHECK((tuned->runner_up->name == "wgmma:m64n128" && tuned->runner_up->time_ns == 15));
  CHECK((tuned->automatic->name == "cublas_batched" && tuned->automatic->time_ns == 25));
  CHECK((tuned->vendor->name == "cublaslt" && tuned->vendor->time_ns == 20));
  CHECK(tuned->num_candidates == 5);
}

/// A strategy's runner with as many rounds as there are factors, each of three samples alike.
RunnerResult timed(const std::string& name, double time_ns, const std::vector<double>& factors) {
  RunnerResult r = runner(name, time_ns);
  Measurement& m = r.measurements.at(0);
  for (size_t round = 0; round < factors.size(); ++round) {
    for (int i = 0; i < 3; ++i) {
      m.samples_ns.push_back(time_ns * factors[round]);
      m.samples_round.push_back(static_cast<int64_t>(round));
    }
  }
  return r;
}

RunnerResult timed_auto(const std::string& strategy, double time_ns,
                        const std::vector<double>& factors) {
  RunnerResult r = timed("auto", time_ns, factors);
  const PlanOptions options = plan_options(strategy);
  r.strategy = options.strategy;
  r.policy = options.policy;
  return r;
}

const std::vector<double> kSteady(12, 1.0);

TEST_CASE("what beats auto beyond doubt is kept") {
  const auto tuned =
      tuned_case(result_of({timed("gemv", 120, kSteady), timed("small_m:m8n64", 80, kSteady),
                            timed_auto("cublaslt:h1", 100, kSteady)}),
                 linear());
  REQUIRE(tuned);
  CHECK((tuned->beats_auto() && tuned->vs_auto.verdict == "faster" && tuned->vs_auto.pairs == 12));
  CHECK(tuned->vs_auto.speedup_ratio == Approx(1.25));
  CHECK(kept_text(*tuned) == "small_m:m8n64");
  CHECK(kept_entry(*tuned, "hash") == TuningEntry{"small_m", "m8n64", 80 * 1e-3, 2, "hash", false});
}

TEST_CASE("where nothing is faster beyond doubt, auto's own choice stands") {
  std::vector<double> factors = kSteady;
  double time_ns = 90;
  std::string verdict = "ambiguous";
  SECTION("the interval reaches 1, whatever the medians say") {
    for (size_t i = 0; i < factors.size(); i += 2) factors[i] = 1.2;
  }
  SECTION("too few rounds") {
    factors.resize(5);
  }
  SECTION("within the threshold") {
    time_ns = 99.5;
    verdict = "same";
  }
  const auto tuned =
      tuned_case(result_of({timed("gemv", 120, kSteady), timed("small_m:m8n64", time_ns, factors),
                            timed_auto("cublaslt:h1", 100, kSteady)}),
                 linear());
  REQUIRE(tuned);
  CHECK(tuned->winner.name == "small_m:m8n64");
  CHECK((!tuned->beats_auto() && tuned->vs_auto.verdict == verdict));
  CHECK(kept_text(*tuned) == "auto: " + verdict);
  CHECK(kept_entry(*tuned, "hash") == TuningEntry{"cublaslt", "h1", 100 * 1e-3, 2, "hash", true});
}

TEST_CASE("a candidate whose times scatter hides none that is certainly faster") {
  std::vector<double> scattered(12, 102 / 86.0);  // 70 and 102 by turns: the median is 86
  for (size_t i = 0; i < scattered.size(); i += 2) scattered[i] = 70 / 86.0;
  std::vector<RunnerResult> runners{
      timed("wgmma:m64n128", 86, scattered), timed("gemv", 120, kSteady),
      timed("tensor_core:m16n64", 87, kSteady), timed("small_m:m8n64", 90, kSteady),
      timed_auto("cublaslt:h1", 100, kSteady)};
  const auto tuned = tuned_case(result_of(runners), linear());
  REQUIRE(tuned);
  CHECK((tuned->beats_auto() && tuned->winner.name == "tensor_core:m16n64"));
  CHECK(tuned->vs_auto.speedup_ratio == Approx(100 / 87.0));
  CHECK((tuned->runner_up->name == "wgmma:m64n128" && tuned->runner_up->time_ns == 86));
  CHECK(kept_entry(*tuned, "hash") ==
        TuningEntry{"tensor_core", "m16n64", 87 * 1e-3, 4, "hash", false});
  // Where the one that scatters is auto's own choice, what is behind it is no gain.
  runners.back() = timed_auto("wgmma:m64n128", 100, kSteady);
  CHECK(kept_entry(*tuned_case(result_of(runners), linear()), "hash")->is_autos_own);
}

TEST_CASE("what is measured again decides, and says nothing of the other candidates") {
  const auto tuned = [](double time_ns, std::vector<RunnerResult> others) {
    others.push_back(timed("small_m:m8n64", time_ns, kSteady));
    others.push_back(timed_auto("gemv", 100, kSteady));
    return *tuned_case(result_of(others), linear());
  };
  const TunedCase found = tuned(80, {timed("cublaslt", 110, kSteady)});
  REQUIRE(found.beats_auto());
  const TunedCase holds = confirmed(found, tuned(90, {}));
  CHECK(kept_entry(holds, "h") == TuningEntry{"small_m", "m8n64", 90 * 1e-3, 2, "h", false});
  CHECK((holds.vendor->name == "cublaslt" && holds.runner_up->time_ns == 110));
  const TunedCase luck = confirmed(found, tuned(99.5, {}));
  CHECK((!luck.beats_auto() && kept_text(luck) == "auto: same"));
  CHECK(kept_entry(luck, "h") == TuningEntry{"gemv", "", 100 * 1e-3, 2, "h", true});
}

TEST_CASE("auto's own choice is not faster than itself, whatever was measured") {
  const auto own = [](const std::string& choice) {
    return *tuned_case(result_of({timed("simt:m16n64", 100, kSteady), timed("gemv", 120, kSteady),
                                  timed_auto(choice, 144, kSteady)}),
                       linear());
  };
  const TunedCase itself = own("simt:m16n64");
  CHECK((itself.is_autos_own() && !itself.beats_auto() && itself.vs_auto.verdict == "faster"));
  CHECK(kept_text(itself) == "auto (same choice)");
  CHECK(kept_entry(itself, "h") == TuningEntry{"simt", "m16n64", 144 * 1e-3, 2, "h", true});
  CHECK(own("simt:m32n64").beats_auto());  // another policy is another choice
}

TEST_CASE("what cannot be compared with auto is not kept") {
  RunnerResult automatic = timed_auto("gemv", 100, kSteady);
  const auto tuned = [&] {
    return *tuned_case(result_of({timed("simt:m16n64", 50, kSteady), automatic}), linear());
  };
  CHECK(tuned().beats_auto());
  automatic.measurements[0].below_resolution = true;
  CHECK((!tuned().beats_auto() && kept_text(tuned()) == "auto: not_comparable"));
  CHECK(kept_entry(tuned(), "")->strategy == "gemv");
  automatic.verify.after = "fail";  // there is nothing to stand
  CHECK((!tuned().beats_auto() && kept_text(tuned()) == "-" && !kept_entry(tuned(), "")));
}

TEST_CASE("the runner-up is right in every order") {
  for (const auto& order : {std::vector<double>{1, 2, 3}, {3, 2, 1}, {2, 1, 3}, {2, 3, 1}}) {
    std::vector<RunnerResult> runners;
    for (const double time : order) runners.push_back(runner("s" + std::to_string(time), time));
    const auto tuned = tuned_case(result_of(runners), linear());
    CHECK((tuned->winner.time_ns == 1 && tuned->runner_up->time_ns == 2));
  }
}

TEST_CASE("a candidate that is wrong or was not checked never wins") {
  RunnerResult wrong = runner("simt:m16n64", 1);
  SECTION("wrong before") {
    wrong.status = Status::verify_failed;
    wrong.verify.before = "fail";
  }
  SECTION("wrong after") {
    wrong.verify.after = "fail";
  }
  SECTION("too fast to be true") {
    wrong.status = Status::implausible;
  }
  SECTION("not checked") {
    wrong.verify.before = wrong.verify.after = "not_run";
  }
  SECTION("nothing compared") {
    wrong.verify.elements_compared = 0;
  }
  SECTION("not timed") {
    wrong.measurements.clear();
  }
  SECTION("failed") {
    wrong.status = Status::failed;
  }
  const auto tuned = tuned_case(result_of({wrong, runner("gemv", 9)}), linear());
  REQUIRE(tuned);
  CHECK((tuned->winner.name == "gemv" && tuned->num_candidates == 1 && !tuned->runner_up));
  CHECK_FALSE(tuned_case(result_of({wrong}), linear()));
  CHECK_FALSE(tuned_case(result_of({runner("auto", 1)}), linear()));
}

TEST_CASE("graphs decide where there are any") {
  const auto tuned =
      tuned_case(result_of({runner("gemv", 5, 4), runner("simt:m16n64", 6, 3)}), linear());
  CHECK((tuned->regime == Regime::graph && tuned->strategy == "simt"));
  const auto stream =
      tuned_case(result_of({runner("gemv", 5), runner("simt:m16n64", 6)}), linear());
  CHECK((stream->regime == Regime::stream && stream->strategy == "gemv"));
}

TEST_CASE("candidates are strategies by their policies") {
  const auto all = tune_candidates(linear(), DeviceType::cuda, {});
  const auto count = [&](const char* name) { return std::count(all.begin(), all.end(), name); };
  CHECK((count("simt:m16n64") == 1 && count("simt") == 0));
  CHECK((count("cublaslt") == 1 && count("cublas_grouped") == 1 && count("gemv") == 1));
  CHECK(tune_candidates(linear(), DeviceType::cpu, {}) ==
        std::vector<std::string>{"sequential", "wide"});
  const auto& conv2d = catalog::find_primitive("conv2d");
  CHECK(tune_candidates(conv2d, DeviceType::cuda, {"grouped", "sequential"}).size() == 8 + 1);
  CHECK(tune_candidates(conv2d, DeviceType::cuda, {"channels_last:h7"}).size() == 1);
  CHECK(tune_candidates(linear(), DeviceType::cuda, {"simt", "small_m:m8n64", "auto"}).size() == 5);
}

TEST_CASE("a space names strategies and policies, of all ops or of one") {
  const auto& ragged = catalog::find_primitive("ragged_linear");
  const std::vector<const catalog::PrimitiveSpec*> ops{&linear(), &ragged};
  using Names = std::vector<std::string>;
  CHECK(space_of("simt,linear/small_m:m8n64", linear(), ops) == Names{"simt", "small_m:m8n64"});
  CHECK(space_of("simt,linear/small_m:m8n64", ragged, ops) == Names{"simt"});
  CHECK(space_of("gemv", ragged, ops).empty());
  for (const auto& [list, message] : {std::pair<const char*, const char*>{"simtt", "mean simt"},
                                      {"simt:m16n65", "simt:m16n64"},
                                      {"linear/gemvv", "linear/gemv"},
                                      {"conv2d/simt", "unknown strategy"},
                                      {"simt,,gemv", "--space"}})
    CHECK_THROWS_WITH(space_of(list, linear(), ops), ContainsSubstring(message));
  const catalog::PrimitiveSpec* const one = &linear();
  CHECK_THROWS_WITH(
      space_of("bogus", *one, {one}),  // sequential is the CPU's, too
      ContainsSubstring("one of sequential, cublas_batched") && !ContainsSubstring(", sequential"));
}

using Folder = test::TemporaryFolder;

TEST_CASE("tune measures, keeps, adds to what was kept, and run reads it") {
  const Folder folder;
  const Outcome first = wbench("tune " + kTiny + "--tuning t.json");
  CHECK(first.code == kSuccess);
  CHECK_THAT(first.out, ContainsSubstring("runner-up") && ContainsSubstring("n=2 batch=2 d=8"));
  // Three rounds are too few for a verdict.
  CHECK_THAT(first.out, ContainsSubstring("kept"));
  CHECK_THAT(first.out, ContainsSubstring("auto: ") || ContainsSubstring("auto (same choice)"));
  CHECK_THAT(first.out, ContainsSubstring("x [") && ContainsSubstring("] wide"));
  REQUIRE(std::filesystem::exists("t.json"));
  CHECK(TuningCache::load("t.json").size() == 1);
  CHECK(wbench("tune --op linear --n 3 --batch 2 --d 8" + kShort + "--tuning t.json").code == 0);
  const TuningCache cache = TuningCache::load("t.json");
  CHECK(cache.size() == 2);
  const std::string key = tiny_key(3);
  const TuningEntry* entry = cache.find(Context::cpu().info(), "linear", key);
  REQUIRE(entry != nullptr);
  CHECK((entry->num_candidates == 2 && entry->time_us > 0 && entry->policy.empty()));
  CHECK((entry->is_autos_own && entry->strategy == "wide"));

  const Outcome run = wbench("run " + kTiny + "--tuning t.json --explain");
  CHECK(run.code == kSuccess);
  // Where the line breaks depends on the processor's name.
  const std::string explained = std::regex_replace(run.out, std::regex("\n +"), " ");
  CHECK_THAT(explained, ContainsSubstring(": tuned: ") && ContainsSubstring("of 2 candidates"));
  const Outcome other = wbench("run --op linear --n 5 --batch 2 --d 8" + kShort +
                               "--tuning t.json --explain --strategy auto");
  CHECK_THAT(other.out, ContainsSubstring("not in the tuning cache"));
}

TEST_CASE("what beats auto is measured again before it is kept") {
  const auto tune = [] {
    return wbench(
        "tune linear --n 2 --batch 1 --d 1 -d cpu --color never -v --rounds 12 --warmup-time 0 "
        "--min-samples 3 --max-samples 36");
  };
  const std::string kept = "  sequential  -";  // a call of it takes half as long as one of wide
  Outcome o = tune();
  for (int i = 0; i < 9 && o.out.find(kept) == std::string::npos; ++i) o = tune();
  CHECK(o.code == kSuccess);
  INFO(o.out << o.err);
  if (o.out.find(kept) == std::string::npos) SKIP("sequential is not faster here");
  const std::string line = "  linear n=2 batch=1 d=1\n";
  const size_t first = o.err.find(line);
  REQUIRE(first != std::string::npos);
  CHECK(o.err.find(line, first + 1) != std::string::npos);
}

TEST_CASE("what a search finds is measured in full before it is kept") {
  const Folder folder;
  for (const std::string search : {"halving", "random --budget 2"}) {
    const Outcome o = wbench("tune " + kTiny + "--write t.json --search " + search);
    CHECK(o.code == kSuccess);
    const TuningCache cache = TuningCache::load("t.json");
    const TuningEntry* entry = cache.find(Context::cpu().info(), "linear", tiny_key());
    REQUIRE(entry != nullptr);
    CHECK((entry->num_candidates == 2 && entry->time_us > 0));
  }
  const Outcome one = wbench("tune " + kTiny + "--space linear/wide --apply t.json");
  CHECK(one.code == kSuccess);
  CHECK_THAT(one.out, ContainsSubstring("wide") && ContainsSubstring("1\n"));
  CHECK(wbench("tune " + kTiny + "--apply absent.json").code == kRuntimeError);
}

TEST_CASE("every primitive is tuned, those of one plan under one name") {
  const Folder folder;
  const std::string softmax = "--op softmax --n 2 --batch 2 --d 8" + kShort + "--tuning t.json";
  CHECK(wbench("tune " + softmax).code == kSuccess);
  const std::string conv =
      "--op conv1d --n 2 --batch 2 --channels 3 --length 8" + kShort + "--tuning t.json";
  CHECK(wbench("tune " + conv).code == kSuccess);
  const TuningCache cache = TuningCache::load("t.json");
  CHECK(cache.size() == 2);
  const TuningKey key = tuning_key(SoftmaxProblem{.num_members = 2, .rows = 2, .features = 8});
  CHECK(cache.find(Context::cpu().info(), key.primitive, key.problem) != nullptr);
  CHECK_THAT(cache.to_text(), ContainsSubstring("\"conv\""));
  for (const std::string& of : {softmax, conv}) {
    const Outcome run = wbench("run " + of + " --explain --strategy auto");
    CHECK(run.code == kSuccess);
    CHECK_THAT(run.out, ContainsSubstring(": tuned: "));
  }
}

TEST_CASE("tune without a file keeps nothing, and a dry run measures nothing") {
  const Folder folder;
  const Outcome unkept = wbench("tune linear --n 2 --batch 2 --d 8 -d cpu --max-samples 6");
  CHECK(unkept.code == kSuccess);
  CHECK_THAT(unkept.err, ContainsSubstring("nothing is kept without --tuning FILE"));
  const Outcome dry = wbench("tune " + kTiny + "--tuning t.json --dry-run");
  CHECK(dry.code == kSuccess);
  CHECK_THAT(dry.out, ContainsSubstring("linear n=2 batch=2 d=8\n  sequential\n  wide\n"));
  CHECK(std::filesystem::is_empty("."));
}

TEST_CASE("a cache that is not understood stops tune and run, and stays as it is") {
  const Folder folder;
  const std::string text = GENERATE("", "{", R"({"schema":{"name":"wide.tuning","version":9}})");
  write_file("t.json", text);
  for (const char* command : {"tune ", "run "}) {
    const Outcome o = wbench(command + kTiny + "--tuning t.json");
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring("tuning: t.json: "));
    CHECK(o.out.empty());
  }
  CHECK(read_file("t.json") == text);
  CHECK(wbench("run " + kTiny + "--tuning absent.json").code == kRuntimeError);
}

/// Standard error that does something as soon as the first word arrives.
class Meddler : public std::stringbuf {
 public:
  explicit Meddler(std::function<void()> act) : act_(std::move(act)) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (auto act = std::exchange(act_, nullptr)) act();
    return std::stringbuf::xsputn(text, count);
  }
  std::function<void()> act_;
};

/// tune's exit code and errors, where the file becomes another one while it measures.
std::pair<int, std::string> tune_while(const std::function<void()>& act) {
  Meddler buffer(act);
  std::ostringstream out;
  std::ostream err(&buffer);
  const int code = wbench(
      "-v --color never tune linear --n 2 --batch 2 --d 8 -d cpu --warmup-time 0 --rounds 3 "
      "--min-samples 3 --max-samples 6 --tuning t.json --again",
      out, err);
  return {code, buffer.str()};
}

TEST_CASE("what others keep in the same file meanwhile is not lost") {
  const Folder folder;
  TuningCache theirs;
  theirs.set(Context::cpu().info(), "linear", "theirs", {"wide", "", 1, 2, ""});
  const auto [code, err] = tune_while([&] { theirs.save("t.json"); });
  CHECK(code == kSuccess);
  CHECK_THAT(err, ContainsSubstring("wrote t.json: 2 entries"));
  const TuningCache all = TuningCache::load("t.json");
  CHECK(all.size() == 2);
  CHECK(all.find(Context::cpu().info(), "linear", "theirs") != nullptr);
  CHECK_FALSE(std::filesystem::exists("t.json.lock"));

  const auto [broken_code, broken_err] = tune_while([] { write_file("t.json", "{ not mine"); });
  CHECK(broken_code == kRuntimeError);
  CHECK_THAT(broken_err, ContainsSubstring("t.json: this is no JSON; nothing that was measured"));
  CHECK(read_file("t.json") == "{ not mine");
}

TEST_CASE("exit codes of tune") {
  const Folder folder;
  const auto [line, code, message] = GENERATE(table<std::string, int, std::string>({
      {"tune", kUsage, "--op is missing"},
      {"tune --op model:resnet", kUsage, "did you mean"},
      {"tune --op linaer", kUsage, "did you mean linear?"},
      {"tune --op linear --verify off", kUsage, "--verify"},
      {"tune --op linear --strategy simt:m16n65", kUsage, "did you mean m16n64"},
      {"tune --op linear --strategy gemv:m16n64", kUsage, "has no policies to name"},
      {"tune --op linear --space simtt", kUsage, "did you mean simt"},
      {"tune --op linear --space simt --skip gemv", kUsage, "--space contradicts"},
      {"tune --op linear --search random", kUsage, "--budget SECONDS allows"},
      {"tune --op linear --search best", kUsage, "--search"},
      {"tune --op linear --again", kUsage, "--again is of --tuning FILE"},
      {"tune --op linear -d cpu --space simt", kNothingRan, "no strategy is left"},
      {"tune --op linear --tunin t", kUsage, "did you mean --tuning"},
      {"tune --op linear -d cpu --regime graph", kUsage, "expected cpu"},
      {"tune --op linear -d cuda:63", kEnvironment, "cuda"},
      {"tune --op linear -d cpu --strategy simt", kNothingRan, "no strategy is left"},
      {"tune --op linear -d cpu --filter nothing_like_it", kNothingRan, "--filter"},
      {"tune --op linear -d cpu --where n<0 --dry-run", kNothingRan, "no case matches"},
      {"tune --tuning /no/such/folder/t.json " + kTiny, kRuntimeError, "/no/such/folder/t.json"},
  }));
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == code);
  CHECK_THAT(o.err, ContainsSubstring(message));
}

TEST_CASE("an interrupted tune ends with 130 and keeps what was measured") {
  const Folder folder;
  set_interrupted(true);
  CHECK(wbench("tune " + kTiny + "--tuning t.json").code == kInterrupted);
  CHECK_FALSE(std::filesystem::exists("t.json"));
}

TEST_CASE("help of tune explains its columns") {
  const Outcome o = wbench("tune --help");
  CHECK(o.code == kSuccess);
  for (const char* part : {"vs auto", "kept", "95 % interval", "vs vendor", "--tuning", "--n",
                           "--budget", "Exit codes"})
    CHECK_THAT(o.out, ContainsSubstring(part));
  CHECK_THAT(wbench("list policies").out, ContainsSubstring("m16n64"));
}

}  // namespace
}  // namespace wide::bench
