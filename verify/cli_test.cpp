// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench as its users meet it: what goes where, what is saved, what is listed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "bench/result_json.hpp"
#include "verify/cli_case.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

class TemporaryFolder {
 public:
  TemporaryFolder() : old_(std::filesystem::current_path()) {
    std::filesystem::create_directories(path_);
    std::filesystem::current_path(path_);
  }
  ~TemporaryFolder() {
    std::filesystem::current_path(old_);
    std::filesystem::remove_all(path_);
  }

 private:
  std::filesystem::path old_,
      path_ = std::filesystem::temp_directory_path() / ("wide-cli-" + std::to_string(std::rand()));
};

}  // namespace

TEST_CASE("a run end to end: JSON on standard output, and nothing else") {
  const Outcome o = wbench("run --op linear --n 4,8 --device cpu --budget 2 --json -");
  CHECK(o.code == kSuccess);
  const RunResult result = parse_result(o.out);
  CHECK(result.complete);
  CHECK(result.exit_code == 0);
  REQUIRE(result.cases.size() == 2);
  CHECK(result.cases[1].point.integer("n") == 8);
  for (const CaseResult& c : result.cases) {
    CHECK(c.status == Status::ok);
    REQUIRE(c.strategies.size() == 2);
    REQUIRE(c.baselines.size() == 1);
    for (const RunnerResult& r : c.strategies) {
      CHECK(r.verify.before == "pass");
      CHECK(r.verify.after == "pass");
      CHECK(r.verify.elements_compared > 0);
      CHECK(r.measurements.at(0).stats.median_ns > 0);
    }
    CHECK(c.speedups.size() == 2);
    CHECK_THAT(c.reproduce, ContainsSubstring("--device cpu"));
  }
  CHECK(result.op_summaries.size() == 1);
}

TEST_CASE("a bare run lists the primitives and is a usage error") {
  const Outcome o = wbench("run");
  CHECK(o.code == kUsage);
  for (const auto* spec : catalog::primitives())
    CHECK_THAT(o.out, ContainsSubstring(std::string(spec->name)));
  CHECK(wbench("").code == kUsage);
}

TEST_CASE("options may come in any order, before and behind the command") {
  const Outcome o = wbench("--dry-run run -q --n 2 --op linear");
  CHECK(o.code == kUsage);  // --dry-run is the command's
  CHECK(wbench("-q run --n 2 --dry-run --op linear").out ==
        wbench("run --op linear --dry-run --n 2 -q").out);
}

TEST_CASE("a dry run prints the cases with their commands, which print the same case") {
  const Outcome o = wbench("run --op all -p ci -d cpu --dry-run --seed 7");
  CHECK(o.code == kSuccess);
  int expected = 0;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    int cases = 1;
    for (const catalog::Axis& axis : catalog::find_sweep(*spec, "ci").axes) {
      cases *= static_cast<int>(axis.values.size());
    }
    expected += cases;
  }
  CHECK_THAT(o.out, ContainsSubstring(std::to_string(expected) + " cases"));
  std::istringstream lines(o.out);
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  wbench ")) continue;
    ++commands;
    const Outcome again = wbench(line.substr(9) + " --dry-run");
    CHECK(again.code == kSuccess);
    CHECK_THAT(again.out, ContainsSubstring(line) && ContainsSubstring("1 case\n"));
  }
  CHECK(commands == expected);
}

TEST_CASE("verify checks and measures nothing") {
  const Outcome o = wbench("verify --op all --n 2 -p ci -d cpu -q --color never --json -");
  CHECK(o.code == kSuccess);
  const RunResult result = parse_result(o.out);
  CHECK(result.cases.size() == catalog::primitives().size());
  for (const CaseResult& c : result.cases) {
    for (const RunnerResult& r : c.strategies) {
      CHECK(r.verify.before == "pass");
      CHECK(r.measurements.empty());
    }
  }
}

TEST_CASE("a saved result prints as it did when it was made") {
  const TemporaryFolder folder;
  const Outcome run = wbench("run " + kTiny + "-o r.json --csv r.csv --md r.md -s --explain");
  CHECK(run.code == kSuccess);
  const Outcome shown = wbench("show r.json --explain --color never");
  CHECK(shown.code == kSuccess);
  CHECK(shown.out == run.out);
  CHECK(std::filesystem::file_size("r.csv") > 100);
  CHECK(std::filesystem::file_size("r.md") > 100);
  std::filesystem::path saved;
  for (const auto& entry : std::filesystem::directory_iterator("results")) saved = entry.path();
  CHECK(saved.filename().string().ends_with("Z-linear.json"));
  CHECK(wbench("show --explain --color never " + saved.string()).out == run.out);
  std::ifstream file("r.json");
  std::streambuf* console = std::cin.rdbuf(file.rdbuf());
  const Outcome piped = wbench("show - --explain --color never");
  std::cin.rdbuf(console);
  CHECK(piped.out == run.out);
  CHECK(wbench("show absent.json").code == kRuntimeError);
  std::ofstream("bad.json")
      << "{\"schema\": {\"name\": \"wbench.result\", \"version\": \"2.0.0\"}}";
  const Outcome bad = wbench("show bad.json");
  CHECK(bad.code == kUsage);
  CHECK_THAT(bad.err, ContainsSubstring("bad.json") && ContainsSubstring("2.0.0"));
}

TEST_CASE("list and info need no device") {
  const std::string what =
      GENERATE("list", "list ops", "list strategies", "list axes --op linear", "list presets",
               "list dtypes", "list devices", "list metrics", "info");
  const Outcome text = wbench(what + " --no-gpu"), document = wbench(what + " --json -");
  CHECK(text.code == kSuccess);
  CHECK(!text.out.empty());
  CHECK(document.code == kSuccess);
  CHECK(!nlohmann::json::parse(document.out).empty());
}

TEST_CASE("every strategy is listed with device, kind, state and summary") {
  const auto rows = nlohmann::json::parse(wbench("list strategies --json -").out);
  size_t strategies = 0;
  for (const auto* spec : catalog::primitives()) strategies += spec->strategies.size();
  CHECK(rows.size() == strategies);
  for (const auto& row : rows) {
    for (const char* key : {"op", "strategy", "device", "kind", "verified", "summary"})
      CHECK(!row.at(key).get<std::string>().empty());
  }
}

}  // namespace wide::bench
