// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The stream of a run's events: the same result as the document at the end, and what there was of
// it wherever the stream ends.
#include "bench/document/events.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::TemporaryFolder;

const std::string kCases = "--op linear,softmax --n 2,3 --batch 2 --d 8" + kShort;

}  // namespace

TEST_CASE("the events of a run are its result") {
  const TemporaryFolder folder;
  REQUIRE(wbench("run " + kCases + "--events e.jsonl -o r.json --strategy wide,simt").code ==
          kSuccess);
  const RunResult result = load_result("r.json"), told = load_result("e.jsonl");
  CHECK(told.complete);
  CHECK(to_json(told) == to_json(result));
  CHECK(wbench("show e.jsonl").out == wbench("show r.json").out);
}

TEST_CASE("events that end anywhere are a result with the cases up to there") {
  const TemporaryFolder folder;
  REQUIRE(wbench("run " + kCases + "--events e.jsonl").code == kSuccess);
  const std::string whole = read_file("e.jsonl");
  const size_t first = whole.find('\n') + 1;
  size_t cases = 0;
  for (size_t end = first; end <= whole.size(); end += 97) {
    const RunResult result = parse_result(whole.substr(0, end));
    CHECK(result.cases.size() >= cases);
    CHECK(result.complete == (end == whole.size()));
    cases = result.cases.size();
  }
  CHECK(parse_result(whole).cases.size() == 4);
  CHECK_THROWS_MATCHES(parse_result(whole.substr(0, first - 1)), Error,
                       MessageMatches(ContainsSubstring("no run has started")));
  const std::string next =
      "events, line " + std::to_string(std::count(whole.begin(), whole.end(), '\n') + 1) + ": ";
  CHECK_THROWS_MATCHES(parse_result(whole + "{\"reason\":7}\n"), Error,
                       MessageMatches(ContainsSubstring(next)));
  CHECK_THROWS_MATCHES(parse_result(whole + "x\n"), Error, MessageMatches(ContainsSubstring(next)));
  CHECK_THROWS_MATCHES(
      parse_result(whole + "{\"reason\":\"case-finished\",\"case\":{\"op\":1,\"op\":2}}\n"), Error,
      MessageMatches(ContainsSubstring(next + "$.case.op is given twice")));
  CHECK(parse_result(whole + "{\"reason\":\"what-later-versions-say\"}\n").cases.size() == 4);
  CHECK(parse_result(whole + whole).cases.size() == 4);
}

TEST_CASE("every time is told before its case has ended") {
  const TemporaryFolder folder;
  REQUIRE(wbench("run " + kCases + "--events e.jsonl").code == kSuccess);
  std::istringstream lines(read_file("e.jsonl"));
  std::vector<nlohmann::json> times;
  int64_t num_cases = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["reason"] == "measurement-finished") times.push_back(event);
    if (event["reason"] != "case-finished") continue;
    const auto& ended = event["case"];
    size_t told = 0;
    for (const char* group : {"strategies", "baselines"}) {
      for (const auto& runner : ended[group]) {
        for (const auto& measurement : runner["measurements"]) {
          const auto is_it = [&](const auto& time) {
            return time["case_id"] == ended["case_id"] && time["op"] == ended["op"] &&
                   time["name"] == runner["name"] &&
                   time["measurement"]["stats"]["median_ns"] == measurement["stats"]["median_ns"];
          };
          CHECK(std::any_of(times.begin(), times.end(), is_it));
          ++told;
        }
      }
    }
    CHECK((told > 0 && times.size() == told));
    times.clear();
    ++num_cases;
  }
  CHECK(num_cases == 4);
}

TEST_CASE("a run that is killed has told what it finished") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    (void)wbench("run --op linear --n 1:400 --batch 2 --d 8 --events e.jsonl" + kShort);
    ::_exit(0);
  }
  const auto lines = [] {
    const std::string text = std::filesystem::exists("e.jsonl") ? read_file("e.jsonl") : "";
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (lines() < 24 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(child, SIGKILL);
  int status = 0;
  (void)::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  const RunResult result = load_result("e.jsonl");
  CHECK_FALSE(result.complete);
  CHECK(result.cases.size() >= 3);
  CHECK(result.cases.size() < 400);
  CHECK(result.cases.at(1).strategies.at(0).measurements.at(0).stats.median_ns > 0);
}

TEST_CASE("a run whose ceilings are known later starts again") {
  const TemporaryFolder folder;
  RunResult run = consistent(sample_result());
  const std::vector<CaseResult> cases = run.cases;
  run.cases.clear();
  const Calibration known = run.calibration;
  run.calibration = {};
  EventLog log("e.jsonl");
  CHECK(log.start(run));
  CHECK_FALSE(log.start(run));
  CHECK((load_result("e.jsonl").cases.empty() && load_result("e.jsonl").id == run.id));
  for (const CaseResult& c : cases) {
    run.cases.push_back(c);
    if (run.cases.size() == 2) run.calibration = known;
    log.add(run);
    const RunResult told = load_result("e.jsonl");
    CHECK((told.cases.size() == run.cases.size() && told.calibration == run.calibration));
  }
}

TEST_CASE("events that cannot be written cost no measurement") {
  const TemporaryFolder folder;
  const Outcome full = wbench("run " + kTiny + "--events /dev/full -o r.json");
  CHECK(full.code == kRuntimeError);
  CHECK_THAT(full.err, ContainsSubstring("cannot write /dev/full: No space left on device"));
  CHECK(load_result("r.json").cases.size() == 1);
  const Outcome nowhere = wbench("run " + kTiny + "--events no/such/folder");
  CHECK(nowhere.code == kRuntimeError);
  CHECK_THAT(nowhere.err, ContainsSubstring("cannot write no/such/folder"));
}

}  // namespace wide::bench
