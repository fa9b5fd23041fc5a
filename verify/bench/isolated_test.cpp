// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cases and runs in processes of their own, and commands for profilers. The children are the real
// wbench, or a script that dies in its place.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "bench/command/isolated.hpp"
#include "bench/command/repeated.hpp"
#include "bench/document/case_id.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

constexpr const char* kProgram = WIDE_BINARY_DIR "/bench/wbench";

/// A script that kills itself for one case, leaves no result for another, and is wbench for others.
void write_script(const std::string& path, const std::string& fatal_case,
                  const std::string& torn_case) {
  std::ofstream(path) << "#!/bin/sh\nfor file; do :; done\ncase \"$*\" in\n*" << fatal_case
                      << "*) kill -SEGV $$;;\n*" << torn_case
                      << "*) echo '{\"cases\"' >$file; exit 0;;\nesac\nexec " << kProgram
                      << " \"$@\"\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

RunPlan plan_of(const std::vector<int64_t>& members) {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  RunPlan plan(Context::cpu());
  std::vector<catalog::Case> cases;
  for (const int64_t n : members) {
    const std::vector<std::pair<std::string, catalog::AxisValue>> axes{
        {"n", n}, {"batch", int64_t{2}}, {"d", int64_t{8}}};
    cases.push_back(catalog::make_case(spec, axes));
  }
  plan.work = {{&spec, cases}};
  return plan;
}

TEST_CASE("a case that crashes, or leaves no result, fails alone and says how it ended") {
  const test::TemporaryFolder folder;
  const RunPlan plan = plan_of({2, 3, 5, 4});
  const auto id = [&](int i) {
    return case_id(*plan.work[0].first, plan.work[0].second.at(static_cast<size_t>(i)));
  };
  write_script("program", id(1), id(2));
  const std::vector<std::string> command{"./program", "run",
                                         "--op",      "linear",
                                         "--n",       "2,3,5,4",
                                         "--batch",   "2",
                                         "--d",       "8",
                                         "--device",  "cpu",
                                         "-q",        "--rounds",
                                         "3",         "--warmup-time",
                                         "0",         "--min-samples",
                                         "3",         "--max-samples",
                                         "3"};
  int64_t told = 0;
  RunPlan watched = plan;
  watched.on_case = [&](const RunResult&, CaseResult&) { ++told; };
  watched.ceilings_hold_s = 0;
  watched.measure_ceilings = [](double) { return Calibration{1, {}, 1, 1, 1}; };
  RunResult result;
  run_isolated(watched, command, result);
  CHECK(result.complete);
  REQUIRE(result.environment_checks.size() == 1);  // by the first child's ceilings, and this one's
  CHECK(result.environment_checks[0].code == "E_CEILINGS_MOVED");
  CHECK(told == 4);
  REQUIRE(result.cases.size() == 4);
  CHECK(result.cases[0].status == Status::ok);
  CHECK(result.cases[1].status == Status::failed);
  CHECK_THAT(result.cases[1].reason, ContainsSubstring("signal 11"));
  CHECK(result.cases[2].status == Status::failed);
  CHECK_THAT(result.cases[2].reason, ContainsSubstring("2.json"));
  CHECK(result.cases[3].status == Status::ok);
  CHECK(result.cases[3].point.integer("n") == 4);
  CHECK(result.cases[3].strategies.at(0).measurements.at(0).stats.n >= 3);
  CHECK(result.calibration.mem_bw_bytes_per_s > 0);
}

TEST_CASE("wbench run --isolate is the same run, case by case") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> command{kProgram,   "run",
                                         "--op",     "linear",
                                         "--n",      "2,3",
                                         "--batch",  "2",
                                         "--d",      "8",
                                         "--device", "cpu",
                                         "-q",       "--rounds",
                                         "3",        "--warmup-time",
                                         "0",        "--min-samples",
                                         "3",        "--max-samples",
                                         "3",        "--isolate",
                                         "--json",   "result.json"};
  CHECK(run_program(command, true) == 0);
  const RunResult result = load_result("result.json");
  CHECK(result.config.isolate);
  CHECK((result.cases.size() == 2 && result.complete));
}

/// A script that keeps what each child was told and what it left, and is wbench.
void write_noting_script() {
  std::ofstream("noting") << "#!/bin/sh\nfor file; do :; done\ncp $file told.${file##*/}\n"
                          << kProgram << " \"$@\"\ncode=$?\ncp $file left.${file##*/}\n"
                          << "exit $code\n";
  REQUIRE(::chmod("noting", 0755) == 0);
}

TEST_CASE("children get the calibration of the first one, and a share of the budget") {
  const test::TemporaryFolder folder;
  write_noting_script();
  RunPlan plan = plan_of({2, 3, 4});
  plan.config.budget_s = 4;
  RunResult result;
  run_isolated(
      plan,
      {"./noting", "run", "--op=linear", "--n=2,3,4", "--batch=2", "--d=8", "--device=cpu", "-q",
       "--budget=4", "--warmup-time=0", "--rounds=3", "--min-samples=3", "--max-samples=3"},
      result);
  REQUIRE((result.complete && result.cases.size() == 3));
  CHECK(result.duration_s < 8);
  CHECK(result.calibration != Calibration());
  for (int i = 0; i < 3; ++i) {
    const RunResult told = load_result("told." + std::to_string(i) + ".json"),
                    left = load_result("left." + std::to_string(i) + ".json");
    CHECK(told.cases.empty());
    CHECK(told.calibration == (i == 0 ? Calibration() : result.calibration));
    CHECK(left.calibration == result.calibration);
    CHECK(told.config.budget_s.value() < (i == 0 ? 1.5 : 4));
    CHECK(left.config.budget_s == told.config.budget_s);
  }
}

/// Runs the program itself, whose repeated runs start it again.
Outcome program(const std::string& line) {
  std::vector<std::string> words{kProgram};
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  const int code = run_program_into("out", "err", words);
  return {code, read_file("out"), read_file("err")};
}

TEST_CASE("a run repeated is as many processes, each with a result and files of its own") {
  const test::TemporaryFolder folder;
  const Outcome run = program("run " + kTiny +
                              "--repeat 2 --json r.json --csv r.csv --export jsonl=r --events "
                              "e.log --tag nightly --seed 7 --save-workspace always:w");
  INFO(run.err);
  CHECK(run.code == kSuccess);
  std::set<std::string> ids, processes;
  for (int i = 0; i < 2; ++i) {
    const std::string number = "-" + std::to_string(i + 1);
    const RunResult result = load_result("r" + number + ".json");
    CHECK((result.config.repeat_index == i && result.config.repeat_count == 2));
    CHECK(result.config.seed == 7);
    CHECK(result.process.size() == 16);
    CHECK(result.argv.back() == "always:w");
    ids.insert(result.id);
    processes.insert(result.process);
    for (const auto& file : {"r" + number + ".csv", "r" + number, "e" + number + ".log"})
      CHECK(std::filesystem::file_size(file) > 100);
    CHECK(!std::filesystem::is_empty("w" + number));
    CHECK(wbench("show @nightly" + number).code == kSuccess);
  }
  CHECK((ids.size() == 2 && processes.size() == 2));
  CHECK(wbench("show @nightly").code == kUsage);
  CHECK(run.out.find("sequential") != run.out.rfind("sequential"));  // a table each
  // Several runs are one side of a comparison.
  const Outcome compared = program("run " + kTiny + "--repeat 2 --compare r-1.json --fail-on none");
  CHECK_THAT(compared.out,
             ContainsSubstring("base: 1 run of") && ContainsSubstring("candidate: 2 runs of"));
  const Outcome other = program("run --op linear --n 3 --batch 2 --d 8" + kShort +
                                "--repeat 2 --compare r-1.json --json o.json");
  CHECK(other.code == kNothingRan);
  CHECK_THAT(other.err, ContainsSubstring("--compare r-1.json: no case is in both"));
  CHECK_FALSE(std::filesystem::exists("o-1.json"));
  const Outcome loud = program("run --verify only --repeat 2 --op linear --n 2 -d cpu");
  CHECK_THAT(loud.err, ContainsSubstring("run 1 of 2\n") && ContainsSubstring("run 2 of 2\n"));
  const Outcome document = program("run " + kTiny + "--repeat 2 --json -");
  CHECK(document.code == kUsage);
  CHECK_THAT(document.err, ContainsSubstring("expected files"));
}

TEST_CASE("a program that is waited for ends when its parent is told to") {
  const test::TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM}) {
    install_interrupt_handler();
    std::thread parent([signal] {
      while (!std::filesystem::exists("ready")) std::this_thread::sleep_for(10ms);
      ::kill(::getpid(), signal);
    });
    // Only the parent is told, and each signal is told once.
    const std::string script =
        "trap 'exit 7' INT TERM; touch ready; "
        "i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done";
    CHECK(run_program({"sh", "-c", script}, true) == 7);
    parent.join();
    CHECK(is_interrupted());
    set_interrupted(false);
    std::filesystem::remove("ready");
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

TEST_CASE("a repeated run that is told to end waits for its process' partial result") {
  const test::TemporaryFolder folder;
  const std::string line =
      std::string(kProgram) + " run --op linear --n 2,3,4,5 --batch 2 --d 8 --device cpu -q " +
      "--stop count --min-samples 5000 --min-time 60 --timeout 60 --repeat 2 --json r.json " +
      "--events events";
  // Its shell tells wbench alone, as soon as its process runs.
  const std::string script =
      line + " > out & while [ ! -e events-1 ]; do sleep 0.1; done; " + "kill -TERM $!; wait $!";
  const auto start = std::chrono::steady_clock::now();
  CHECK(run_program({"sh", "-c", script}, true) == kInterrupted);
  CHECK(std::chrono::steady_clock::now() - start < 40s);
  const RunResult result = load_result("r-1.json");
  CHECK((!result.complete && result.exit_code == kInterrupted));
  CHECK_FALSE(std::filesystem::exists("r-2.json"));
}

TEST_CASE("isolated cases are isolated in every repeated run") {
  const test::TemporaryFolder folder;
  const Outcome run = program("run " + kTiny + "--isolate --repeat 2 --json r.json");
  CHECK(run.code == kSuccess);
  for (const char* file : {"r-1.json", "r-2.json"}) {
    const RunResult result = load_result(file);
    CHECK((result.complete && result.config.isolate && result.cases.size() == 1));
    CHECK(result.process.empty());
  }
}

TEST_CASE("a process of a run gets what is left of its time limit") {
  const test::TemporaryFolder folder;
  std::ofstream("noting") << "#!/bin/sh\necho \"$*\" >>words\n";
  REQUIRE(::chmod("noting", 0755) == 0);
  const auto words_of_child = [&] {
    RunResult result;
    run_isolated(plan_of({2}), {"./noting"}, result);
    return read_file("words");
  };
  CHECK(time_left_words().empty());
  CHECK_THAT(words_of_child(), !ContainsSubstring(kTimeLeft));
  set_time_limit(100);
  CHECK_THAT(words_of_child(), ContainsSubstring(std::string(kTimeLeft) + " 99."));
  set_interrupted(false);
}

TEST_CASE("exit code 124 where the time limit ends a run, which leaves what it has") {
  const test::TemporaryFolder folder;
  // Ten seconds of sampling a case, and more cases than the limit has room for.
  const std::string endless =
      "run --op linear --n 2:40 --batch 2 --d 8 --device cpu -q --warmup-time 0 --min-time 10 "
      "--timeout 10 --json r.json ";
  const std::string more = GENERATE("", "--isolate ", "--repeat 3 ");
  INFO(more);
  const auto start = std::chrono::steady_clock::now();
  const Outcome run = program(endless + more + "--time-limit 1.5");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(run.code == kTimedOut);
  CHECK((took.count() > 1.4 && took.count() < 9));
  const RunResult result = load_result(more == "--repeat 3 " ? "r-1.json" : "r.json");
  CHECK(!result.complete);
  CHECK(result.exit_code == kTimedOut);
  CHECK(!std::filesystem::exists("r-2.json"));
}

TEST_CASE("an entry of a suite is isolated where it says so, and is the same run") {
  const test::TemporaryFolder folder;
  std::ofstream("suite.json") << R"({"schema": {"name": "wbench.suite", "version": "1.0.0"},
 "name": "mine", "defaults": {"device": "cpu", "axes": {"n": [2, 3], "batch": 2, "d": 8},
  "warmup_s": 0, "rounds": 3, "min_samples": 3, "max_samples": 6, "seed": 7},
 "entries": [{"op": "linear", "name": "apart", "isolate": true}, {"op": "linear"}]})";
  const int code =
      run_program({kProgram, "-q", "suite", "run", "suite.json", "--results", "r"}, true);
  CHECK(code == 0);
  const RunResult apart = load_result("r/apart.json"), together = load_result("r/linear.json");
  CHECK((apart.complete && apart.config.isolate && !together.config.isolate));
  REQUIRE((apart.cases.size() == 2 && together.cases.size() == 2));
  for (size_t i = 0; i < 2; ++i) {
    CHECK(apart.cases[i].case_id == together.cases[i].case_id);
    CHECK(apart.cases[i].reproduce == together.cases[i].reproduce);
    CHECK(apart.cases[i].strategies.size() == together.cases[i].strategies.size());
  }
}

TEST_CASE("the profiler's command runs one case with nothing but its calls") {
  const test::TemporaryFolder folder;
  const std::string selects = "--op linear --n 2 --batch 2 --d 8 --device cpu";
  const Outcome nsys =
      wbench("profile --tool nsys --dry-run --launches 5 --folder reports " + selects);
  CHECK(nsys.code == kSuccess);
  CHECK_THAT(nsys.out, ContainsSubstring("nsys profile --capture-range=cudaProfilerApi "
                                         "--capture-range-end=stop"));
  CHECK_THAT(nsys.out, ContainsSubstring(" --cuda-graph-trace=node "));  // not a graph as one bar
  CHECK_THAT(nsys.out, ContainsSubstring("--output=reports/linear"));
  CHECK_THAT(nsys.out, ContainsSubstring(" run --launches 5 " + selects));
  CHECK_THAT(nsys.out, ContainsSubstring("--baseline none --profile\n"));
  const Outcome ncu = wbench("profile --tool=ncu --set full --dry-run " + selects);
  CHECK_THAT(ncu.out, ContainsSubstring("ncu --clock-control none --profile-from-start off ") &&
                          ContainsSubstring(" --set full --force-overwrite --export ./linear "));
  CHECK_THAT(ncu.out, !ContainsSubstring("--tool"));
  const Outcome replays =
      wbench("profile --tool ncu --dry-run --folder r --regime graph --endless " + selects);
  CHECK_THAT(replays.out, ContainsSubstring("--export r/linear"));
  CHECK_THAT(replays.out, ContainsSubstring(" run --regime graph --endless " + selects));
  CHECK(wbench("profile --regime cold " + selects).code == kUsage);
  const Outcome many = wbench("profile --op linear --n 2,3 --batch 2 --d 8 --device cpu");
  CHECK(many.code == kUsage);
  CHECK_THAT(many.err, ContainsSubstring("2 cases are selected, expected 1"));
}

#ifdef WIDE_FAKE_NVTX_LIBRARY
/// The ranges that a profiler is shown, outermost first, each time that one is pushed.
std::vector<std::string> stacks_in(const std::string& log) {
  std::istringstream lines(read_file(log));
  std::vector<std::string> stack, seen;
  for (std::string line; std::getline(lines, line);) {
    if (line == "pop") {
      REQUIRE(!stack.empty());
      stack.pop_back();
      continue;
    }
    stack.push_back(line);
    std::string text;
    for (const std::string& range : stack) text += range + "/";
    seen.push_back(text);
  }
  CHECK(stack.empty());
  return seen;
}

TEST_CASE("the range that ncu is told of is around the profiled calls, and around no others") {
  const test::TemporaryFolder folder;
  const std::string selects = "--op linear --n 2 --batch 2 --d 8 --device cpu --strategy wide";
  const std::string command = wbench("profile --tool ncu --dry-run " + selects).out;
  const std::string option = "--nvtx --nvtx-include ";
  const size_t start = command.find(option);
  REQUIRE(start != std::string::npos);
  const size_t name = start + option.size();
  const std::string range = command.substr(name, command.find(' ', name) - name);
  CHECK(range == "wide@profile/");
  setenv("NVTX_INJECTION64_PATH", WIDE_FAKE_NVTX_LIBRARY, 1);
  setenv("WIDE_FAKE_NVTX_LOG", "log", 1);
  std::vector<std::string> words{kProgram, "run", "--profile", "--launches", "3"};
  std::istringstream more(selects + " --baseline none -q");
  for (std::string word; more >> word;) words.push_back(word);
  const int code = run_program(words, true);
  unsetenv("NVTX_INJECTION64_PATH");
  CHECK(code == kSuccess);
  int64_t profiled = 0, others = 0;
  for (const std::string& stack : stacks_in("log")) {
    if (stack.find("wide@wide::linear(wide)") == std::string::npos) continue;
    ++(stack.starts_with(range + "wide@wide/") ? profiled : others);
  }
  CHECK(profiled == 3);
  CHECK(others >= 2);  // what is checked before, and what warms up
}
#endif

TEST_CASE("a tool that is not there is said, and its command is printed all the same") {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const Outcome o = wbench("profile --tool ncu --op linear --n 2 --batch 2 --d 8 --device cpu");
  setenv("PATH", path.c_str(), 1);
  CHECK(o.code == kEnvironment);
  CHECK_THAT(o.out, ContainsSubstring("ncu --clock-control none --profile-from-start off"));
  CHECK_THAT(o.err, ContainsSubstring("ncu is not on PATH"));
}

TEST_CASE("what is profiled has calls and no times") {
  const Outcome o = wbench("run --profile --launches 2 --json - " + kTiny);
  CHECK(o.code == kSuccess);
  const RunResult result = parse_result(o.out);
  for (const RunnerResult& r : result.cases.at(0).strategies) CHECK(r.measurements.empty());
}

TEST_CASE("endless calls end when they are interrupted, and leave a result") {
  const test::TemporaryFolder folder;
  Outcome o;
  std::thread caller([&] { o = wbench("run --profile --endless --json r.json " + kTiny); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  set_interrupted(true);
  caller.join();
  CHECK(o.code == kInterrupted);
  CHECK(load_result("r.json").cases.size() == 1);
}

TEST_CASE("several devices: a result of each") {
  const test::TemporaryFolder folder;
  const std::string words = "verify --op linear --n 2 --batch 2 --d 8 --strategy wide -q";
  const Outcome cpu = wbench(words + " -d cpu,cuda:93 --json r.json");
  CHECK(cpu.code == kEnvironment);  // there are not so many
  CHECK(load_result("r-1.json").devices.at(0).device.type == DeviceType::cpu);
  CHECK_FALSE(std::filesystem::exists("r-2.json"));
  const std::pair<const char*, const char*> bad[] = {
      {" -d cuda:0,0", "--device: \"cuda:0,0\" names a device twice, expected each once"},
      {" -d cpu,cpu", "\"cpu,cpu\" names a device twice"},
      {" -d cuda,cuda:0", "names a device twice"},
      {" -d cpu,1", "--device: \"1\", expected cpu"},
      {" -d cuda:0,", "device"},
      {" -d cpu,cuda:0 --json -", "standard output takes one document"}};
  for (const auto& [more, message] : bad) {
    const Outcome o = wbench(words + more);
    INFO(more << o.err);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring(message));
  }
  CHECK_THAT(wbench("run --op linear --isolate -d cpu,cuda").err,
             ContainsSubstring("--isolate: 2 devices, expected one"));
}

TEST_CASE("info of ops is what listings have") {
  const Outcome text = wbench("info --op linear,softmax");
  CHECK(text.code == kSuccess);
  for (const char* word : {"linear", "softmax", "wgmma", "m16n64", "batch", "quick"})
    CHECK_THAT(text.out, ContainsSubstring(word));
  const auto document = nlohmann::json::parse(wbench("info --op softmax --json -").out);
  CHECK(document["ops"].size() == 1);
  CHECK(document["axes"].size() >= 4);
  CHECK(wbench("info --op sotfmax").code == kUsage);
  CHECK_THAT(wbench("info --op linear --self-check").err, ContainsSubstring("excludes"));
}

}  // namespace
}  // namespace wide::bench
