// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench as its users meet it: exit codes and their precedence, what goes where, messages that
// help.
#include "bench/cli.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "bench/commands.hpp"
#include "bench/interrupt.hpp"
#include "bench/result_json.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

struct Outcome {
  int code = 0;
  std::string out, err;
};

/// Runs a command line; the words are separated by spaces, '' is an empty one.
Outcome wbench(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words{"wbench"};
  for (std::string word; stream >> word;) words.push_back(word == "''" ? "" : word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  setenv("COLUMNS", "120", 1);
  const int code = wbench_main(static_cast<int>(argv.size()), argv.data(), out, err);
  set_interrupted(false);
  return {code, out.str(), err.str()};
}

/// A run that takes a moment, on the CPU.
const std::string kShort =
    " --device cpu -q --warmup-time 0 --rounds 3 --min-samples 3 --max-samples 6 --color never ";
const std::string kTiny = "--op linear --n 2 --batch 2 --d 8" + kShort;

RunResult result_with(Status strategy, Status baseline = Status::ok) {
  RunResult result;
  CaseResult c;
  RunnerResult r;
  r.status = strategy;
  c.strategies.push_back(r);
  r.status = baseline;
  c.baselines.push_back(r);
  result.cases.push_back(c);
  return result;
}

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

TEST_CASE("exit code 2, with a message that says what to type instead") {
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"run --op linaer", "did you mean linear?"},
      {"run --op ''", "--op"},
      {"run --op linear,", "single commas"},
      {"run --opp linear", "did you mean --op"},
      {"run --op linear --bacth 3", "did you mean --batch"},
      {"run --op linear --vocab 3", "linear: unknown axis \"vocab\""},
      {"run --op embedding,linear --vocab 3", "linear: unknown axis \"vocab\""},
      {"run --op linear -a vocab=3", "linear: unknown axis \"vocab\""},
      {"run --op linear -a n", "expected NAME=SPEC"},
      {"run --op linear -a n=4 --n 8", "axis n is given twice"},
      {"run --op linear --strategy simtt", "did you mean simt?"},
      {"run --op linear --skip seqential", "did you mean sequential?"},
      {"run --op linear -p quik", "did you mean quick?"},
      {"run --op linear --dtype fp61", "did you mean fp16"},
      {"run --op linear --n 4,,8", "--n: \"4,,8\""},
      {"run --op linear --n ''", "--n: \"\""},
      {"run --op linear --n -1", "--n: \"-1\""},
      {"run --op linear --baseline lop", "did you mean loop?"},
      {"run --op linear -d cpu --baseline graph", "expected loop or none"},
      {"run --op linear --regime cold", "cold is unsupported in this version"},
      {"run --op linear -d cpu --regime stream", "expected cpu"},
      {"run --op linear -d gpu", "expected cpu, cuda or cuda:K"},
      {"run --op linear -d cuda:x", "expected cpu, cuda or cuda:K"},
      {"run --op linear -d cuda:-1", "expected cpu, cuda or cuda:K"},
      {"--no-gpu run --op linear -d cuda", "contradicts --no-gpu"},
      {"run --op linear --filter (", "--filter"},
      {"run --op linear --rounds 1", "from 3 to 10000"},
      {"run --op linear --rounds 3.5", "--rounds"},
      {"run --op linear --budget 0", "a number above 0"},
      {"run --op linear --budget nan", "a number above 0"},
      {"run --op linear --seed -1", "from 0 to 2^53"},
      {"run --op linear --target-ci 0%", "a percentage"},
      {"run --op linear --verify maybe", "--verify"},
      {"run --op linear --json - --md -", "standard output takes one"},
      {"run --op linear -t 0", "--top"},
      {"--color blue run --op linear", "--color"},
      {"frobnicate", "expected one of run, verify, list, info, show"},
      {"rum", "did you mean run?"},
      {"list strategie", "did you mean strategies?"},
      {"list --op linaer", "did you mean linear?"},
      {"list ops --bogus", "--bogus"},
      {"show", "files"},
  }));
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK(o.out.empty());
}

TEST_CASE("a bare run lists the primitives and is a usage error") {
  const Outcome o = wbench("run");
  CHECK(o.code == kUsage);
  for (const auto* spec : catalog::primitives())
    CHECK_THAT(o.out, ContainsSubstring(std::string(spec->name)));
  CHECK(wbench("").code == kUsage);
}

TEST_CASE("exit code 6 where nothing matches") {
  const std::string line = GENERATE("run --op linear -d cpu --filter no_such_case",
                                    "run --op linear -d cpu --strategy wide --skip wide",
                                    "run --dry-run --op linear -d cpu --filter no_such_case",
                                    "verify --op linear --n 2 --d 4 -d cpu --strategy simt");
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kNothingRan);
  CHECK(!o.err.empty());
}

TEST_CASE("exit code 7 where the device asked for is not usable, but a usage error comes first") {
  const Outcome o = wbench("run --op linear --device cuda:63");
  CHECK(o.code == kEnvironment);
  CHECK_THAT(o.err, ContainsSubstring("cuda"));
  CHECK(wbench("run --op linaer --device cuda:63").code == kUsage);
}

TEST_CASE("exit codes of results, by precedence") {
  CHECK(exit_code_of(result_with(Status::ok), false) == kSuccess);
  CHECK(exit_code_of(result_with(Status::failed), false) == kRuntimeError);
  CHECK(exit_code_of(result_with(Status::oom), false) == kRuntimeError);
  CHECK(exit_code_of(result_with(Status::verify_failed), false) == kWrong);
  CHECK(exit_code_of(result_with(Status::implausible), false) == kWrong);
  CHECK(exit_code_of(result_with(Status::ok, Status::verify_failed), false) == kWrong);
  CHECK(exit_code_of(result_with(Status::verify_failed, Status::failed), false) == kRuntimeError);
  CHECK(exit_code_of(result_with(Status::skipped), false) == kNothingRan);
  CHECK(exit_code_of(result_with(Status::verify_failed), true) == kInterrupted);
  CHECK(exit_code_of(RunResult(), false) == kNothingRan);
  RunResult before_anything = result_with(Status::skipped);
  before_anything.cases[0].status = Status::failed;
  CHECK(exit_code_of(before_anything, false) == kRuntimeError);
}

TEST_CASE("an interrupted run writes what it has and ends with 130") {
  set_interrupted(true);
  const Outcome o = wbench("run " + kTiny + "--json -");
  CHECK(o.code == kInterrupted);
  const RunResult result = parse_result(o.out);
  CHECK(!result.complete);
  CHECK(result.exit_code == kInterrupted);
}

TEST_CASE("a file that cannot be written is exit code 1, and the table is printed all the same") {
  for (const char* file : {"/no/such/folder/r.json", "/dev/full"}) {
    const Outcome o = wbench("run " + kTiny + "-o " + file);
    CHECK(o.code == kRuntimeError);
    CHECK_THAT(o.err, ContainsSubstring(file));
    CHECK_THAT(o.out, ContainsSubstring("sequential"));
  }
}

TEST_CASE("standard output that breaks is exit code 1") {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  const char* argv[] = {"wbench", "list"};
  CHECK(wbench_main(2, argv, full, err) == kRuntimeError);
  CHECK_THAT(err.str(), ContainsSubstring("standard output"));
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
  CHECK_THAT(o.out, ContainsSubstring("6 cases"));
  std::istringstream lines(o.out);
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  wbench ")) continue;
    ++commands;
    const Outcome again = wbench(line.substr(9) + " --dry-run");
    CHECK(again.code == kSuccess);
    CHECK_THAT(again.out, ContainsSubstring(line) && ContainsSubstring("1 case\n"));
  }
  CHECK(commands == 6);
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

TEST_CASE("help tells exit codes, definitions, and only commands that exist") {
  const Outcome help = wbench("--help");
  CHECK(help.code == kSuccess);
  for (const char* part : {"Exit codes", "130", "run", "verify", "list", "info", "show"})
    CHECK_THAT(help.out, ContainsSubstring(part));
  for (const char* part : {"compare", "report", "profile", "tune", "history", "--sim"})
    CHECK_THAT(help.out, !ContainsSubstring(part));
  const Outcome run = wbench("run --help");
  for (const char* part : {"speedup", "floor", "crossover", "threshold", "median absolute", "--n",
                           "--dtype", "--budget", "2^5", "Exit codes"})
    CHECK_THAT(run.out, ContainsSubstring(part));
  CHECK_THAT(wbench("--version").out, ContainsSubstring("wbench 0."));
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
