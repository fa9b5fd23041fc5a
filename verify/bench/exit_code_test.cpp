// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How wbench ends: every exit code, their precedence, and a message for each.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/document/result_json.hpp"
#include "bench/history/sqlite.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/report/table.hpp"
#include "host/core/cpu_device.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/catalog.hpp"
#include "wide/layers.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

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

}  // namespace

TEST_CASE("exit code 2, with a message that says what to type instead") {
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"run --op linaer", "did you mean linear?"},
      {"run --op ''", "--op"},
      {"run --op linear,", "single commas"},
      {"run --op linear --n ''", "--n: \"\", expected a value, or the option left out"},
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
      {"run --op linear --device cpu --regime cold", "(cold, graph and stream are CUDA's)"},
      {"run --op linear -d cpu --regime stream", "expected cpu"},
      {"run --op linear -d gpu", "expected cpu, cuda or cuda:K"},
      {"run --op linear -d cuda:x", "expected cpu, cuda or cuda:K"},
      {"run --op linear -d cuda:-1", "expected cpu, cuda or cuda:K"},
      {"--no-gpu run --op linear -d cuda", "contradicts --no-gpu"},
      {"run --op linear --filter (", "--filter"},
      {"run --op linear --op softmax", "--op is given twice, expected once"},
      {"run --op linear --n 4 --n 8 --n 9", "--n is given 3 times, expected once"},
      {"run --op linear --n", "--n: no value, expected one"},
      {"list --color", "--color: no value, expected one"},
      {"run --op linear -p ci -p full", "--preset is given twice, expected once"},
      {"--color never --color auto list", "--color is given twice, expected once"},
      {"compare a b --fail-on none,regression",
       "--fail-on: \"none,regression\": none stands alone, expected none or outcomes"},
      {"compare a b --fail-on regression,none", "none stands alone"},
      {"compare a b --fail-on nine", "did you mean none?"},
      {"report a --html r --plots none,heat", "\"none,heat\": none stands alone, expected none or"},
      {"report a --html r --plots heat,all", "\"heat,all\": all stands alone, expected all or"},
      {"compare - -", "compare: standard input is given twice, expected it for base or candidate"},
      {"report - - --md -", "report: standard input is given 2 times, expected once"},
      {"report - --compare - --md -", "report: standard input is given 2 times, expected once"},
      {"run --op linear --rounds 1", "from 3 to 10000"},
      {"run --op linear --rounds 3.5", "--rounds"},
      {"run --op linear --budget 0", "a number above 0"},
      {"run --op linear --budget nan", "a number above 0"},
      {"run --op linear --seed -1", "from 0 to 2^53"},
      {"run --op linear --seed 9007199254740993",
       "--seed: \"9007199254740993\", expected an integer from 0 to 2^53"},
      {"verify --op linear --seed 18446744073709551616", "expected an integer from 0 to 2^53"},
      {"run --op linear --order-seed 9007199254740993", "expected an integer from 0 to 2^53"},
      {"quantize --seed 9007199254740993", "expected an integer from 0 to 2^53"},
      {"run --op linear --rounds 1e3", "\"1e3\", expected an integer from 3 to 10000"},
      {"run --op linear --target-ci 0%", "a percentage"},
      {"run --op linear --verify maybe", "--verify"},
      {"run --op linear --json - --md -", "standard output takes one"},
      {"run --op linear -t 0", "--top"},
      {"run --op linear --min-time -1", "--min-time: \"-1\", expected a number, 0 or above"},
      {"run --op linear --cooldown x", "--cooldown: \"x\", expected a number, 0 or above"},
      {"run --op linear --init gauss", "--init"},
      {"verify --op linear --cases 0", "--cases: \"0\", expected an integer from 1"},
      {"verify --op linear --cases many", "--cases: \"many\", expected an integer from 1"},
      {"run --op linear --adversarial", "--adversarial"},
      {"run --op linear --repeat 0", "--repeat: \"0\", expected an integer from 1 to 1000"},
      {"run --op linear --repeat 2.5", "--repeat"},
      {"run --op linear --time-limit 0", "--time-limit: \"0\", expected a number above 0"},
      {"run --op linear --exit-on-error --keep-going", "excludes"},
      {"run --op linear --fail-on none", "requires --compare"},
      {"run --op linear --metrics time,bandwith", "did you mean bandwidth?"},
      {"profile --op linear --endless --launches 5", "excludes"},
      {"run --op linear --rounds 3.5", "\"3.5\", expected an integer from 3 to 10000"},
      {"run --op linear --max-samples 5.5", "\"5.5\", expected an integer from 1 to 10^9"},
      {"history gc --keep 1.5", "\"1.5\", expected an integer from 0 to 10^9"},
      {"report r.json --html r.html --compare b --metric bogus", "unknown metric \"bogus\""},
      {"run --op linear --save-workspace sometimes", "\"sometimes\", expected never, incorrect"},
      {"verify --op linear --save-workspace never:x", "\"never:x\", expected never"},
      {"run --op linear --save-workspace always:", "\"always:\", expected never"},
      {"run --op linear --mgpu nccl", "--mgpu nccl: not supported: members exchange nothing"},
      {"--color blue run --op linear", "--color"},
      {"frobnicate",
       "expected one of run, verify, tune, profile, trace, suite, list, info, show, compare, "
       "report, history, quantize, completion, man"},
      {"run --model restnet18", "did you mean resnet18?"},
      {"trace", "0 of --op, --model and --onnx are given, expected one"},
      {"trace -m mlp --op linear", "2 of --op, --model and --onnx are given, expected one"},
      {"trace --op linear,mlp -d cpu", "--op names 2 primitives, expected one"},
      {"trace --op linear -d cpu --dot", "expected none with --op"},
      {"trace --op linear -d cpu --n 2 -a n=4", "axis n is given twice"},
      {"trace -m mlp --dot --style tree", "--dot contradicts --style tree"},
      {"trace -m mlp --extent s=4", "--extent s=4 is of a model's file"},
      {"run --model mlp --fixed-input m=1", "--fixed-input m=1 is of a model's file"},
      {"run --model f.onnx --fixed-input m", "--fixed-input is \"m\", expected NAME=NUMBER, each"},
      {"trace --onnx f --extent s", "expected NAME=NUMBER"},
      {"trace --onnx f --extent s=0", "a number from 1 to 2^31"},
      {"trace --onnx f --extent =3", "expected NAME=NUMBER"},
      {"history bisect", "did you mean bisect-hint"},
      {"trace -m mlp,bert", "--model names 2 models, expected one"},
      {"trace -m bert --seq x", "x"},
      {"trace -m mlp --n 2,4", "expected one value"},
      {"trace -m mlp --style svg", "--style"},
      {"rum", "did you mean run?"},
      {"list strategie", "did you mean strategies?"},
      {"list --op linaer", "did you mean linear?"},
      {"list ops --bogus", "--bogus"},
      {"show", "files"},
      {"quantize --format int5", "did you mean int8, int4?"},
      {"quantize --format packed", "unknown format"},
      {"quantize --dtype fp8_e4m3", "unknown dtype"},
      {"quantize --group 32", "group_size is 32, expected 64 or 128"},
      {"quantize --in 0", "from 1 to 10^6"},
      {"quantize --out 1.5", "--out"},
      {"quantize --n 4", "--n"},
      {"quantize /dev/null --in 64 --out 2",
       "has 0 bytes, expected [out, in] = [2, 64] of fp32 = 512"},
  }));
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK(o.out.empty());
}

TEST_CASE("a history that is of a later version, or none, is wrong content: exit code 2") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories("later");
  std::filesystem::create_directories("none");
  SqliteDatabase("later/history.sqlite").execute("PRAGMA user_version = 99");
  write_file("none/history.sqlite", std::string(5000, 'x'));
  std::filesystem::create_directories("lines");
  write_file("lines/index.jsonl", "no line\n");
  const auto [store, message] = GENERATE(table<std::string, std::string>(
      {{"later", "later/history.sqlite: is of version 99, expected at most 2"},
       {"none", "none/history.sqlite: file is not a database"},
       {"jsonl:lines", "lines/index.jsonl:1: is no line of a history"}}));
  for (const std::string& line : {std::string("history"), std::string("history trend"),
                                  std::string("show @last"), std::string("compare @last~1 @last"),
                                  std::string("report @last --md -"), "run " + kTiny + "-s"}) {
    CAPTURE(line);
    const Outcome o = wbench(line + " --store " + store);
    CHECK(o.code == kUsage);
    CHECK(o.out.empty());  // before anything is measured
    CHECK_THAT(o.err, ContainsSubstring(message));
  }
  CHECK(read_file("none/history.sqlite") == std::string(5000, 'x'));
  CHECK(wbench("history --store absent").code == kRuntimeError);
  CHECK_THAT(wbench("--help").out, ContainsSubstring("2 usage, and files that are truncated, no "
                                                     "results or from a later version"));
}

TEST_CASE("a filter that is too long or too deep is refused, whoever it is for") {
  const test::TemporaryFolder folder;
  const auto groups = [](size_t depth) {
    return std::string(depth, '(') + "n=2" + std::string(depth, ')');
  };
  CHECK(wbench("run --dry-run " + kTiny + "--filter " + groups(50)).code == kSuccess);
  CHECK(wbench("run --dry-run " + kTiny + "--filter n=2|" + std::string(996, 'x')).code ==
        kSuccess);
  std::string escaped = "linear|";
  for (int i = 0; i < 60; ++i) escaped += "\\(";  // no groups
  CHECK(wbench("run --dry-run " + kTiny + "--filter " + escaped).code == kSuccess);
  const auto [filter, message] = GENERATE_COPY(table<std::string, std::string>({
      {groups(51), "--filter: its groups are nested 51 deep, expected at most 50"},
      {groups(9850), "--filter: it has 19703 characters, expected at most 1000"},
      {std::string(1001, 'x'), "--filter: it has 1001 characters, expected at most 1000"},
  }));
  write_file("s.json", R"({"schema": {"name": "wbench.suite", "version": "1.0.0"}, "name": "s",
    "entries": [{"op": "linear", "device": "cpu", "filter": ")" +
                           filter + "\"}]}");
  CHECK(wbench("run " + kTiny + "--save --store .").code == kSuccess);
  for (const std::string& line :
       {"run " + kTiny + "--filter " + filter, "tune " + kTiny + "--filter " + filter,
        "history trend --store . --filter " + filter, std::string("suite validate s.json"),
        std::string("suite run s.json")}) {
    CAPTURE(line.substr(0, 20));
    const Outcome o = wbench(line);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring(message));
  }
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

TEST_CASE("strategies of another device are refused before anything is measured") {
  for (const std::string line :
       {"run --strategy simt", "run --only simt,gemv", "verify --only simt"}) {
    const Outcome o = wbench(line + " --op linear --n 2 --d 8 -d cpu");
    INFO(line << ": " << o.err);
    CHECK(o.code == kNothingRan);
    CHECK(o.out.empty());
    CHECK_THAT(o.err,
               ContainsSubstring("there is no simt") &&
                   ContainsSubstring("on cpu, expected auto, auto_unverified, sequential, wide"));
  }
  CHECK(wbench("verify --op linear,softmax --n 2 --d 8 -d cpu --only simt,wide -p ci").code ==
        kSuccess);
}

TEST_CASE("exit code 7 where the device asked for is not usable, but a usage error comes first") {
  const Outcome o = wbench("run --op linear --device cuda:63");
  CHECK(o.code == kEnvironment);
  CHECK_THAT(o.err, ContainsSubstring("cuda"));
  CHECK(wbench("run --op linaer --device cuda:63").code == kUsage);
}

TEST_CASE("what this machine's memory has no room for is refused before it is taken") {
  const auto refused = [](const std::string& of, const std::string& what) {
    const Outcome o = wbench("verify " + of + " --json - -d cpu -q");
    CHECK(o.code == kRuntimeError);
    const CaseResult c = parse_result(o.out).cases.at(0);
    CHECK(c.status == Status::oom);
    CHECK_THAT(c.reason, ContainsSubstring(what + " take") &&
                             ContainsSubstring(" GiB of memory, expected at most the ") &&
                             ContainsSubstring(" that are available"));
  };
  refused("--op linear --n 1 --batch 1 --in 1048576 --out 524288",
          "cpu: a case's operands or weights");
  // Each has room, not all: x and y take 1.4 times what there is, and none is filled before.
  const int64_t rows = available_memory_bytes() / 10 * 7 / (4 * 4096);
  refused("--op linear --n 1 --d 4096 --batch " + std::to_string(rows), "the case's operands");
  GraphBuilder g("large");
  g.output("y", layers::linear(g, "fc", g.input("x", {kBatch, 1 << 20}), 1 << 19));
  (void)catalog::add_model("large", std::move(g).build());
  refused("--model large --n 1 --batch 1", "its members' parameters");
}

TEST_CASE("a history that may only be read is read") {
  const test::TemporaryFolder folder;
  const std::string store = "a?b%#/store", option = " --store " + store;
  REQUIRE(wbench("run " + kTiny + "-s" + option).code == kSuccess);
  std::filesystem::permissions(".", std::filesystem::perms(0755));
  std::filesystem::permissions(store, std::filesystem::perms(0555));
  std::filesystem::permissions(store + "/history.sqlite", std::filesystem::perms(0444));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(1);  // root may write everywhere
    const Outcome list = wbench("history list" + option),
                  tag = wbench("history tag @last x" + option);
    const bool is_read = list.code == kSuccess && list.out.find("1 run") != std::string::npos;
    const bool is_kept = tag.code == kRuntimeError && tag.err.find("readonly") != std::string::npos;
    ::_exit(is_read && is_kept ? 42 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  std::filesystem::permissions(store, std::filesystem::perms(0755));
  CHECK(WEXITSTATUS(status) == 42);
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
  set_time_limit(1e-9);
  CHECK(exit_code_of(result_with(Status::verify_failed), true) == kTimedOut);
  set_interrupted(true);  // whatever time is left
  CHECK(exit_code_of(result_with(Status::ok), true) == kInterrupted);
  set_interrupted(false);
  RunResult before_anything = result_with(Status::skipped);
  before_anything.cases[0].status = Status::failed;
  CHECK(exit_code_of(before_anything, false) == kRuntimeError);
}

TEST_CASE("of several exit codes the first of 130, 124, 2, 1, 7, 3, 4, 5, 6, 0 wins") {
  const int order[] = {kInterrupted, kTimedOut,   kUsage,        kRuntimeError, kEnvironment,
                       kWrong,       kRegression, kInconclusive, kNothingRan,   kSuccess};
  CHECK(std::vector<int>(std::begin(order), std::end(order)) ==
        std::vector<int>{130, 124, 2, 1, 7, 3, 4, 5, 6, 0});
  for (size_t i = 0; i < std::size(order); ++i) {
    for (size_t j = i; j < std::size(order); ++j) {
      CHECK(worse_code(order[i], order[j]) == order[i]);
      CHECK(worse_code(order[j], order[i]) == order[i]);
    }
  }
}

TEST_CASE("-q leaves standard error to what explains an exit code") {
  const test::TemporaryFolder folder;
  REQUIRE(wbench("run " + kTiny + "-o a.json").code == kSuccess);
  REQUIRE(wbench("run " + kTiny + "-o b.json").code == kSuccess);
  std::string quick = kTiny;
  quick.erase(quick.find(" -q"), 3);
  const auto [line, note] = GENERATE_COPY(table<std::string, std::string>({
      {"verify --op linear --n 2,3 --d 8 -d cpu --cases 1", "--cases 1: 1 of 2 cases"},
      {"compare a.json b.json --fail-on none", "no cell could be judged"},
      {"tune " + quick, "nothing is kept without --tuning FILE"},
  }));
  CAPTURE(line);
  CHECK_THAT(wbench(line).err, ContainsSubstring(note));
  const Outcome quiet = wbench(line + " -q");
  CHECK(quiet.code == kSuccess);
  CHECK(quiet.err.empty());
  const Outcome strict = wbench("run " + kTiny + "--strict");
  CHECK(strict.code == kInconclusive);
  CHECK_THAT(strict.err, ContainsSubstring("unreliable: 1 of 1 case"));
  const Outcome unsure = wbench("compare -q a.json b.json --fail-on inconclusive");
  CHECK(unsure.code == kInconclusive);
  CHECK_THAT(unsure.err, ContainsSubstring("no cell could be judged"));
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
  const Outcome run = wbench("run " + kTiny + "-o /dev/full");
  CHECK(run.code == kRuntimeError);
  CHECK_THAT(run.err, ContainsSubstring("/dev/full"));
  CHECK_THAT(run.out, ContainsSubstring("sequential"));
  const Outcome report = wbench("quantize --in 64 --out 2 -o /dev/full");
  CHECK(report.code == kRuntimeError);
  CHECK_THAT(report.err, ContainsSubstring("/dev/full"));
  CHECK_THAT(report.out, ContainsSubstring("int4"));
}

TEST_CASE("standard output that breaks is exit code 1") {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  const char* argv[] = {"wbench", "list"};
  CHECK(wbench_main(2, argv, full, err) == kRuntimeError);
  CHECK_THAT(err.str(), ContainsSubstring("standard output"));
}

TEST_CASE("help tells exit codes, definitions, and only commands that exist") {
  const Outcome help = wbench("--help");
  CHECK(help.code == kSuccess);
  for (const char* part :
       {"Exit codes", "130", "124", "run", "verify", "list", "info", "show", "tune", "quantize",
        "compare", "report", "profile", "history", "suite", "help"})
    CHECK_THAT(help.out, ContainsSubstring(part));
  for (const char* part : {"--sim", "inspect"})  // needs kernels
    CHECK((help.out.find(part) != std::string::npos) == (WIDE_HAS_CUDA != 0));
  const Outcome run = wbench("run --help");
  for (const char* part : {"speedup", "floor", "crossover", "threshold", "median absolute", "--n",
                           "--dtype", "--budget", "2^5", "Exit codes"})
    CHECK_THAT(run.out, ContainsSubstring(part));
  CHECK_THAT(wbench("--version").out, ContainsSubstring("wbench 0."));
}

TEST_CASE("help COMMAND is COMMAND --help") {
  CHECK(wbench("help").out == wbench("--help").out);
  for (const char* command : {"run", "show", "history", "help"}) {
    const Outcome help = wbench(std::string("help ") + command);
    CHECK(help.code == kSuccess);
    CHECK(help.out == wbench(std::string(command) + " --help").out);
  }
  CHECK(wbench("help test").out == wbench("verify --help").out);
  const Outcome unknown = wbench("help rnu");
  CHECK(unknown.code == kUsage);
  CHECK_THAT(unknown.err, ContainsSubstring("did you mean run?"));
  CHECK_THAT(wbench("run help").err,
             ContainsSubstring("unknown argument \"help\", did you mean --help?"));
  const Outcome early = wbench("--op linear");
  CHECK(early.code == kUsage);
  CHECK_THAT(early.err,
             ContainsSubstring("\"--op\" is no option of the program, expected a command"));
  const Outcome apart = wbench("run linear --n 4 8");
  CHECK(apart.code == kUsage);
  CHECK_THAT(apart.err, ContainsSubstring("unknown argument \"8\"; commas separate values"));
}

TEST_CASE("help fits the terminal, of 120 columns here") {
  for (const char* command : {"", "run ", "tune ", "compare ", "history ", "suite "}) {
    std::istringstream help(wbench(std::string(command) + "--help").out);
    int count = 0;
    for (std::string line; std::getline(help, line); ++count) {
      INFO(command << ": " << line);
      CHECK(display_width(line) <= 120);
    }
    CHECK(count > 20);
  }
}

TEST_CASE("an axis is explained by all that it is, and for which primitives") {
  const std::string help = wbench("run --help").out;
  CHECK_THAT(help, ContainsSubstring("whose statistics (batchnorm1d, batchnorm2d); what becomes of "
                                     "a window (pooling)"));
  CHECK_THAT(help, ContainsSubstring("; ..: wbench list axes"));
  CHECK_THAT(help, ContainsSubstring("  members\n"));  // the same for all
}

TEST_CASE("what is missing is said with its command and what was expected") {
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"show", "show: no files, expected result files"},
      {"compare", "compare: no base, expected result"},
      {"compare a", "compare: no candidate, expected"},
      {"completion", "completion: no shell, expected the shell to complete for: bash, zsh or fish"},
      {"report", "report: no results, expected results"},
      {"history foo", "history: what: unknown word \"foo\", expected one of list,"},
  }));
  const Outcome o = wbench(line);
  INFO(o.err);
  CHECK(o.code == kUsage);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring("wbench: " + message));
}

}  // namespace wide::bench
