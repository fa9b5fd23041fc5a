// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The history: both stores keep the same promises, to several processes at a time and to those that
// are killed.
#include "bench/history/history.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "bench/document/json_number.hpp"
#include "bench/document/result_json.hpp"
#include "bench/history/change_point.hpp"
#include "bench/history/names.hpp"
#include "bench/history/sqlite.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/history_case.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/sanitizers.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::TemporaryFolder;

std::vector<std::string> ids(const HistoryStore& store) {
  std::vector<std::string> all;
  for (const HistoryRun& run : store.runs()) all.push_back(run.id);
  return all;
}

/// Runs `body` in a process of its own; its exit status as waitpid gives it.
template <class F>
pid_t in_child(const F& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 1;
  try {
    body();
    code = 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a child: %s\n", error.what());
  }
  ::_exit(code);
}

int wait_for(pid_t child) {
  int status = -1;
  (void)::waitpid(child, &status, 0);
  return status;
}

/// All runs of the store have their documents and points.
void check_whole(const HistoryStore& store) {
  const std::vector<HistoryRun> runs = store.runs();
  CHECK(store.points().size() == runs.size());
  for (const HistoryRun& run : runs) CHECK(parse_result(store.document(run.id)).id == run.id);
}

}  // namespace

TEST_CASE("a history keeps runs once each, oldest first, with their documents and medians") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  CHECK_THROWS_MATCHES(
      open_history(where, true), Error,
      MessageMatches(ContainsSubstring("there is no history in store: run --save")));
  const HistoryRecord second = record(2, 200), first = record(1);
  {
    const auto store = open_history(where);
    CHECK(store->add(second));
    CHECK(store->add(first));
    CHECK_FALSE(store->add(first));
    HistoryRecord other = first;
    other.document += " ";
    CHECK_THROWS_MATCHES(store->add(other), Error,
                         MessageMatches(ContainsSubstring("another run has the id run-1")));
  }
  const auto store = open_history(where, true);
  CHECK(store->runs() == std::vector<HistoryRun>{first.run, second.run});
  CHECK(store->points() == std::vector<HistoryPoint>{first.points.at(0), second.points.at(0)});
  CHECK(store->points().at(1).median_ns == 200);
  CHECK(store->document("run-2") == second.document);
  CHECK_THROWS_AS(store->document("run-3"), Error);
}

TEST_CASE("of runs of one second, the one that was added last is the last") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  const auto store = open_history(where);
  for (const char* id : {"c", "a", "d", "b"}) {
    HistoryRecord record = wide::bench::record(1);
    record.run.id = record.points.at(0).run = id;
    store->add(record);
  }
  CHECK(ids(*store) == std::vector<std::string>{"c", "a", "d", "b"});
  store->remove({"d"});
  CHECK(ids(*store) == std::vector<std::string>{"c", "a", "b"});
  CHECK(store->points().back().run == "b");
}

TEST_CASE("a tag is one run's; what is removed takes its tags along") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  const auto store = open_history(where);
  for (int i = 1; i <= 3; ++i) store->add(record(i));
  store->tag("run-1", "good");
  store->tag("run-1", "base");
  CHECK(store->runs().at(0).tags == std::vector<std::string>{"base", "good"});
  store->tag("run-2", "good");
  CHECK(store->runs().at(0).tags == std::vector<std::string>{"base"});
  CHECK(store->runs().at(1).tags == std::vector<std::string>{"good"});
  CHECK_THROWS_AS(store->tag("run-9", "good"), Error);
  CHECK_THROWS_AS(store->remove({"run-1", "run-9"}), Error);
  CHECK_THROWS_MATCHES(store->document("run-9"), Error,
                       MessageMatches(ContainsSubstring("no run has the id run-9")));
  CHECK(ids(*store).size() == 3);
  store->remove({"run-2"});
  CHECK(ids(*store) == std::vector<std::string>{"run-1", "run-3"});
  CHECK(store->points().size() == 2);
  CHECK_THROWS_AS(find_run(*store, "@good"), Error);
  CHECK(store->add(record(2)));
  CHECK(store->runs().at(1).tags.empty());
}

TEST_CASE("ids and tags that are no names are refused") {
  for (const char* id : {"", "../x", ".x", "a/b", "a b", "-x"}) {
    RunResult result = run_of(1);
    result.id = id;
    CHECK_THROWS_AS(record_of(result, ""), Error);
    CHECK_THROWS_AS(require_tag(id), Error);
  }
  CHECK_THROWS_AS(require_tag(std::string(81, 'a')), Error);
  CHECK_THROWS_AS(require_tag("last"), Error);
  CHECK_THROWS_AS(require_tag("last~3"), Error);
  CHECK_NOTHROW(require_tag("v1.2+gpu"));
}

TEST_CASE("runs are found by age, tag, beginning of the id, and commit") {
  const TemporaryFolder folder;
  const auto store = open_history("store");
  CHECK_THROWS_MATCHES(find_run(*store, "@last"), Error,
                       MessageMatches(ContainsSubstring("the history has 0 runs")));
  for (int i = 1; i <= 3; ++i) store->add(record(i));
  HistoryRecord dirty = record(4);
  dirty.run.git_dirty = true;
  store->add(dirty);
  store->tag("run-2", "release");
  CHECK(find_run(*store, "@last") == "run-4");
  CHECK(find_run(*store, "@last~3") == "run-1");
  CHECK(find_run(*store, "@release") == "run-2");
  CHECK(find_run(*store, "run-3") == "run-3");
  CHECK(find_run(*store, "git:" + std::string(39, 'a') + "1") == "run-1");
  CHECK(find_run(*store, "git:aaaaaaa") == "run-3");  // run-4's build was not clean
  for (const char* name : {"@last~4", "@last~-1", "@last~x", "@run-", "@nothing", "@",
                           "git:", "git:--help", "git:bbbbbbb", "git:no such ref"}) {
    INFO(name);
    CHECK_THROWS_AS(find_run(*store, name), Error);
  }
}

TEST_CASE("sixteen processes write at a time, and nothing is lost") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  constexpr int kProcesses = 16, kRuns = 4;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(in_child([&] {
      const auto store = open_history(where);
      for (int r = 0; r < kRuns; ++r) {
        store->add(record(100 * (p + 1) + r));
        store->tag("run-" + std::to_string(100 * (p + 1) + r), "newest-" + std::to_string(p));
      }
    }));
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  const auto store = open_history(where, true);
  CHECK(ids(*store).size() == kProcesses * kRuns);
  int64_t tags = 0;
  for (const HistoryRun& run : store->runs()) tags += static_cast<int64_t>(run.tags.size());
  CHECK(tags == kProcesses);
  check_whole(*store);
}

TEST_CASE(
    "a database that another connection is writing to is waited for, the write-ahead log too") {
  const TemporaryFolder folder;
  const SqliteDatabase writer("h.db");
  writer.execute("PRAGMA journal_mode = DELETE");
  writer.execute("CREATE TABLE t(a)");
  writer.execute("BEGIN IMMEDIATE");
  std::string trouble;
  std::thread other([&] {
    try {
      const SqliteDatabase waiting("h.db");
      waiting.execute("INSERT INTO t VALUES(1)");
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  writer.execute("COMMIT");
  other.join();
  CHECK(trouble.empty());
}

TEST_CASE("a writer that is killed leaves a history that is whole") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  (void)open_history(where);
  size_t before = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = in_child([&] {
      const auto store = open_history(where);
      for (int r = 0;; ++r) store->add(record(1000 * (round + 1) + r));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * round));
    ::kill(child, SIGKILL);
    (void)wait_for(child);
    const auto store = open_history(where, true);
    CHECK(ids(*store).size() >= before);
    before = ids(*store).size();
    check_whole(*store);
  }
  const auto store = open_history(where);
  CHECK(store->add(record(1)));
  CHECK(ids(*store).size() == before + 1);
}

TEST_CASE("a disk without room is an error, and nothing is lost") {
  const TemporaryFolder folder;
  const std::string where = GENERATE(std::string("store"), std::string("jsonl:store"));
  open_history(where)->add(record(1));
  HistoryRecord large = record(2);
  large.document += std::string(4 << 20, ' ');
  const pid_t child = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
    try {
      open_history(where)->add(large);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::io ? 42 : 4);
    }
  });
  const int status = wait_for(child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
  const auto store = open_history(where, true);
  CHECK(ids(*store) == std::vector<std::string>{"run-1"});
  check_whole(*store);
  CHECK(store->add(large));
}

TEST_CASE(
    "an index with half a line is read without it, and written on behind the last whole one") {
  const TemporaryFolder folder;
  const auto store = open_history("jsonl:store");
  store->add(record(1));
  std::ofstream("store/index.jsonl", std::ios::app)
      << R"({"add": {"id": "run-2", "star)" << std::string(5000, 'x');  // longer than what follows
  CHECK(ids(*store) == std::vector<std::string>{"run-1"});
  store->add(record(3));
  CHECK(ids(*store) == std::vector<std::string>{"run-1", "run-3"});
  CHECK(read_file("store/index.jsonl").ends_with("\n"));
  std::ofstream("store/index.jsonl", std::ios::app) << "{\"add\": 7}\n";
  CHECK_THROWS_MATCHES(store->runs(), Error,
                       MessageMatches(ContainsSubstring("index.jsonl:3: is no line of a history")));
}

TEST_CASE("a database takes the steps it has not seen, all or none") {
  const TemporaryFolder folder;
  const char* const one[] = {"CREATE TABLE a(x INTEGER)"};
  const char* const broken[] = {one[0], "CREATE TABLE b(x INTEGER)", "CREATE TABLE a(x INTEGER)"};
  const char* const three[] = {one[0], "CREATE TABLE b(x INTEGER)", "ALTER TABLE a ADD y INTEGER"};
  SqliteDatabase database("x.sqlite");
  database.migrate(one);
  database.execute("INSERT INTO a VALUES(7)");
  CHECK_THROWS_AS(database.migrate(broken), Error);
  CHECK_THROWS_AS(database.execute("SELECT * FROM b"), Error);
  database.migrate(three);
  SqliteStatement row(database, "SELECT x, y, (SELECT count(*) FROM b) FROM a");
  REQUIRE(row.step());
  CHECK(row.integer(0) == 7);
  CHECK(row.integer(2) == 0);
  CHECK_THROWS_MATCHES(database.migrate(one), Error,
                       MessageMatches(ContainsSubstring("is of version 3, expected at most 1")));
}

TEST_CASE("what is no database is an error that names the file") {
  const TemporaryFolder folder;
  std::filesystem::create_directories("store");
  std::ofstream("store/history.sqlite") << std::string(5000, 'x');
  CHECK_THROWS_MATCHES(open_history("store"), Error,
                       MessageMatches(ContainsSubstring("store/history.sqlite: ")));
}

HistorySeries series_with(const std::vector<double>& medians_ns, const std::string& codes) {
  HistorySeries series;
  series.medians_ns = medians_ns;
  for (const char code : codes) series.codes.emplace_back(1, code);
  return series;
}

TEST_CASE("the noise of a series is twice the robust spread of its last medians") {
  CHECK_FALSE(noise_band(series_with({100, 110}, "aa")));
  // Logarithms: the median of |..| is log(1.1).
  const HistorySeries series = series_with({1, 100, 110, 121, 1e9}, "aaaaa");
  const double deviations = 2 * 1.4826 * std::sqrt(4. / 3);
  CHECK(std::fabs(noise_band(series, 4)->floor_pct - 100 * (std::pow(1.1, deviations) - 1)) < 1e-9);
  CHECK(noise_band(series, 4)->centre_ns == 115.5);
  const auto same = noise_band(series_with({5, 5, 5, 9}, "aaaa"));
  CHECK((same->floor_pct == 0 && same->centre_ns == 5 && same->is_of_one_code));
  // 9 / 5, which no median sees.
  CHECK(std::fabs(same->few_runs_floor_pct - 100 * (std::pow(1.8, 1.5) - 1)) < 1e-9);
}

TEST_CASE("what a commit changed is no noise") {
  const std::vector<double> stepped{100, 101, 100, 200, 202, 200};
  const auto noise = noise_band(series_with(stepped, "aaabbb"));
  CHECK((noise->is_of_one_code && noise->floor_pct < 4));
  CHECK(noise->few_runs_floor_pct < 4);
  // Two commits of two runs say as much as one of three.
  const auto pairs = noise_band(series_with({100, 200, 101, 202}, "abab"));
  CHECK(pairs->is_of_one_code);
  CHECK(std::fabs(pairs->floor_pct - 100 * (std::pow(1.01, 1.4826 * std::sqrt(2.)) - 1)) < 1e-9);
  // Nobody knows what is noise where every run is of another commit: all that they differ by is.
  for (const char* codes : {"abcdef", "abcdee"}) {
    const auto all = noise_band(series_with(stepped, codes));
    CHECK((!all->is_of_one_code && all->floor_pct > 100));
  }
  CHECK(noise_band(series_with(stepped, "zzzbbb"), 3)->floor_pct < 4);
}

TEST_CASE("runs are of one code where they are of one commit, and it was not changed") {
  HistoryRun run;
  run.id = "one";
  run.git_sha = "c0ffee";
  CHECK(code_of(run) == "c0ffee");
  HistoryRun other = run;
  other.id = "two";
  CHECK(code_of(other) == code_of(run));
  run.git_dirty = other.git_dirty = true;
  CHECK(code_of(other) != code_of(run));
  run.git_dirty = other.git_dirty = false;
  run.git_sha = other.git_sha = "";
  CHECK(code_of(other) != code_of(run));
}

/// Runs' medians around 100, with 1 % of noise and a step behind `step`, in so many cells.
std::vector<HistorySeries> made_up(size_t cells, size_t runs, unsigned seed, size_t step = 0,
                                   double factor = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<HistorySeries> all(cells);
  for (size_t cell = 0; cell < cells; ++cell) {
    for (size_t run = 0; run < runs; ++run) {
      const bool is_after = cell == 0 && step > 0 && run >= step;
      all[cell].medians_ns.push_back(100 * (is_after ? factor : 1) * std::exp(noise(random)));
      all[cell].runs.push_back("run-" + std::to_string(run));
    }
  }
  return all;
}

const unsigned kHistories = test::is_watched() ? 10 : 100;  // twenty times as slow

TEST_CASE("a step that was planted in a history is found, and in noise none is") {
  for (const double factor : {1.12, 1 / 1.12}) {
    for (unsigned seed = 1; seed <= kHistories / 5; ++seed) {
      const auto found = find_changes(made_up(50, 20, seed, 13, factor));
      REQUIRE(!found.empty());
      CHECK(found[0].series == 0);
      CHECK(found[0].change.first_after == 13);
      CHECK(std::abs(found[0].change.after_ns / found[0].change.before_ns / factor - 1) < 0.02);
    }
  }
  int wrong = 0;
  for (unsigned seed = 1; seed <= kHistories; ++seed)
    wrong += !find_changes(made_up(50, 20, seed)).empty();
  CHECK(wrong <= 5);
  CHECK_FALSE(find_change(std::vector<double>{1, 1, 1, 2, 2}));
  CHECK(find_change(std::vector<double>{1, 1, 1, 2, 2, 2})->first_after == 3);
  CHECK(find_change(std::vector<double>{1, 1, 1, 1, 1, 1})->p == 1);
  // Certain, but too small to look for.
  std::vector<HistorySeries> tiny(1);
  for (int run = 0; run < 30; ++run)
    tiny[0].medians_ns.push_back(run < 15 ? 100 + 1e-3 * run : 100.5 + 1e-3 * run);
  CHECK(find_changes(tiny).empty());
  CHECK(find_changes(tiny, 0.05, 0.1).size() == 1);
}

TEST_CASE("bisect-hint names the runs, their commits and the command") {
  const TemporaryFolder folder;
  const auto store = open_history("results");
  for (int i = 0; i < 14; ++i) {
    const double median = (i < 8 ? 100 : 112) + 0.01 * i;
    const RunResult result = run_of(i, median);
    store->add(record_of(result, dumped(to_json(result))));
  }
  const Outcome hint = wbench("history bisect-hint --op linear --axis n=2,4");
  CHECK(hint.code == kSuccess);
  CHECK_THAT(hint.out, ContainsSubstring("between run-7 (aaaaaaaaaa) and run-8 (aaaaaaaaaa): +12"));
  CHECK_THAT(hint.out, ContainsSubstring("git bisect start " + std::string(39, 'a') + "8 " +
                                         std::string(39, 'a') + "7"));
  const auto json = nlohmann::json::parse(wbench("history bisect-hint --json").out);
  REQUIRE(json.size() == 1);
  CHECK(json[0]["after"]["run"] == "run-8");
  CHECK(wbench("history bisect-hint --axis n=8").code == kNothingRan);
  CHECK(wbench("history trend --axis n").code == kUsage);
  for (int i = 8; i < 14; ++i) store->remove({"run-" + std::to_string(i)});
  const Outcome none = wbench("history bisect-hint");
  CHECK(none.code == kSuccess);
  CHECK_THAT(none.out, ContainsSubstring("no change is certain: 1 series, the longest of 8 runs"));
}

TEST_CASE("axes and strategies that nothing has are refused, not those that a history alone has") {
  const TemporaryFolder folder;
  RunResult result = run_of(1);
  CaseResult& old = result.cases.emplace_back(result.cases[0]);
  old.point = catalog::Case("lost", {{"depth", int64_t{3}, false}});
  old.case_id = case_id({}, old.point);
  old.strategies[0].name = "gone";
  open_history("results")->add(record_of(result, to_json(result).dump(1)));
  const std::string history = "history " + std::string(GENERATE("trend", "noise", "bisect-hint"));
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {" --op linear --axis q=2", "--axis: unknown axis \"q\""},
           {" --axis bacth=3", "--axis: unknown axis \"bacth\", did you mean batch"},
           {" --axis depth=3 --op linear", "unknown axis \"depth\""},
           {" --strategy wied", "--strategy: unknown strategy \"wied\", did you mean wide"},
           {" --op linear --strategy gone", "unknown strategy \"gone\""}}) {
    const Outcome o = wbench(history + line);
    CHECK((o.code == kUsage && o.out.empty()));
    CHECK_THAT(o.err, ContainsSubstring(message));
  }
  CHECK(wbench(history + " --op lost --strategy gone --axis depth=3").code == kSuccess);
  CHECK(wbench(history + " --strategy all --op linear,lost").code == kSuccess);
  CHECK(wbench(history + " --strategy wide:m16 --axis dtype=fp16").code == kNothingRan);
  CHECK(wbench(history + " --strategy (loop)").code == kNothingRan);
}

TEST_CASE("wbench history: saved, listed, called by name, tagged, trimmed") {
  const TemporaryFolder folder;
  CHECK(wbench("history").code == kRuntimeError);  // there is none
  const Outcome saved = wbench("run --tag first " + kTiny);
  CHECK(saved.code == kSuccess);
  CHECK(wbench("run -s " + kTiny).code == kSuccess);
  CHECK_THAT(wbench("history list").out, ContainsSubstring("2 runs") && ContainsSubstring("first"));
  CHECK(wbench("show @first").out == saved.out);
  CHECK(wbench("history show @last~1").out == saved.out);
  CHECK(wbench("show @nothing").code == kUsage);
  const Outcome trend = wbench("history trend --op linear --strategy wide");
  CHECK(trend.code == kSuccess);
  CHECK_THAT(trend.out, ContainsSubstring("change"));
  CHECK(wbench("history noise --op softmax").code == kNothingRan);
  CHECK(wbench("history noise --op linaer").code == kUsage);
  CHECK(wbench("history trend --filter [").code == kUsage);
  CHECK(wbench("history tag @last last").code == kUsage);
  CHECK_THAT(wbench("history tag @last").err,
             ContainsSubstring("history tag: 1 argument, expected 2: a run and its tag"));
  CHECK(wbench("history tag @last second").code == kSuccess);
  CHECK(wbench("history gc").code == kUsage);
  CHECK_THAT(wbench("history gc --keep 0").out, ContainsSubstring("removed 0 of 2"));
  CHECK(wbench("history rm @second").code == kSuccess);
  CHECK_THAT(wbench("history").out, ContainsSubstring("1 run\n"));
  for (const auto& file : std::filesystem::directory_iterator("results")) {
    if (file.path().extension() != ".json") continue;
    CHECK(wbench("history add --store jsonl:other " + file.path().string()).code == kSuccess);
  }
  CHECK_THAT(wbench("history --store jsonl:other").out, ContainsSubstring("2 runs"));
  const auto listed =
      nlohmann::ordered_json::parse(wbench("history --store jsonl:other --json").out);
  CHECK(listed.size() == 2);
  CHECK(wbench("run --tag a/b " + kTiny).code == kUsage);
}

}  // namespace wide::bench
