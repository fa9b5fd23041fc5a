// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Histories that somebody or something has tampered with: an error, or what was stored.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <random>
#include <regex>

#include "bench/history/history.hpp"
#include "bench/history/sqlite.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/history_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::TemporaryFolder;

/// All that a store says.
struct Said {
  std::vector<HistoryRun> runs;
  std::vector<HistoryPoint> points;
  std::vector<std::string> documents;
  friend bool operator==(const Said&, const Said&) = default;
};

Said all_of(const HistoryStore& store) {
  Said said{store.runs(), store.points(), {}};
  for (const HistoryRun& run : said.runs) said.documents.push_back(store.document(run.id));
  return said;
}

/// Two runs and a tag.
Said stored_in(const std::string& where) {
  const auto store = open_history(where);
  store->add(record(1));
  HistoryRecord on_gpu = record(2, 200);
  on_gpu.run.device_uuid = "GPU-01234567";
  store->add(on_gpu);
  store->tag("run-1", "good");
  return all_of(*store);
}

}  // namespace

TEST_CASE("a bit that flipped in a history is an error, or changes nothing that it says") {
  const TemporaryFolder folder;
  const auto [where, file, flips] = GENERATE(
      table<std::string, std::string, int>({{"store", "store/history.sqlite", 2000},
                                            {"jsonl:store", "store/index.jsonl", 1000},
                                            {"jsonl:store", "store/runs/run-2.json", 300}}));
  const Said stored = stored_in(where);
  const std::string whole = read_file(file);
  // What ends an index may be the unfinished line of a crash, which readers ignore.
  const size_t size = whole.size() - (file == "store/index.jsonl" ? 1 : 0);
  std::mt19937_64 random(1);
  int errors = 0;
  for (int i = 0; i < flips; ++i) {
    const size_t place = random() % size, bit = random() % 8;
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ (1 << bit));
    std::ofstream(file, std::ios::binary) << flipped;
    try {
      const Said said = all_of(*open_history(where, true));
      CAPTURE(place, bit);
      REQUIRE(said == stored);
    } catch (const Error& error) {
      const bool is_known =
          error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::io;
      CHECK(is_known);
      ++errors;
    }
  }
  CHECK(errors > flips / 5);  // much of a database is empty
}

TEST_CASE("what a crash left of a history of text files is named, and can be added again") {
  const TemporaryFolder folder;
  (void)stored_in("jsonl:store");
  const std::string whole = read_file("store/index.jsonl");
  CHECK(open_history("jsonl:store")->leftovers().empty());
  const size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1;
  write_file("store/index.jsonl", whole.substr(0, third - 9));  // in run-2's line
  const Outcome list = wbench("history list --store jsonl:store");
  CHECK(list.code == kSuccess);
  CHECK_THAT(list.out, ContainsSubstring("1 run\n"));
  CHECK(wbench("history list -q --store jsonl:store").err.empty());
  CHECK_THAT(list.err, ContainsSubstring("store/index.jsonl:2: the line is unfinished") &&
                           ContainsSubstring("store/runs/run-2.json is no run of the history"));
  const std::string command = "history add store/runs/run-2.json --store jsonl:store";
  CHECK_THAT(list.err, ContainsSubstring("wbench " + command));
  CHECK(wbench(command).code == kSuccess);
  const Outcome mended = wbench("history list --store jsonl:store");
  CHECK_THAT(mended.out, ContainsSubstring("2 runs\n"));
  CHECK(mended.err == "");
}

TEST_CASE("a tag that is another in its row than in its index is an error") {
  const TemporaryFolder folder;
  (void)stored_in("store");
  std::string whole = read_file("store/history.sqlite");
  const size_t row = whole.find("goodrun-1");
  REQUIRE(row != std::string::npos);
  whole[row] = 'f';
  std::ofstream("store/history.sqlite", std::ios::binary) << whole;
  CHECK_THROWS_MATCHES(open_history("store"), Error,
                       MessageMatches(ContainsSubstring("store/history.sqlite: is damaged: ")));
}

TEST_CASE("triggers of a database do not run, and its views are not read") {
  const TemporaryFolder folder;
  const Said stored = stored_in("store");
  const auto tamper = [](const char* sql) { SqliteDatabase("store/history.sqlite").execute(sql); };
  tamper("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run WHERE id <> new.id; END");
  open_history("store")->add(record(3));
  CHECK(open_history("store")->runs().size() == 3);
  open_history("store")->remove({"run-3"});
  CHECK(all_of(*open_history("store")) == stored);
  tamper("ALTER TABLE tag RENAME TO real_tag; CREATE VIEW tag AS SELECT 'x' tag, 'run-1' run");
  CHECK_THROWS_MATCHES(open_history("store")->runs(), Error,
                       MessageMatches(ContainsSubstring("view")));
}

TEST_CASE("a history of before there were digests is read as it is") {
  const TemporaryFolder folder;
  const Said stored = stored_in("store");
  SqliteDatabase("store/history.sqlite")
      .execute(
          "UPDATE run SET device_uuid = '', sha256 = '';"
          "ALTER TABLE run DROP COLUMN device_uuid; ALTER TABLE run DROP COLUMN sha256;"
          "ALTER TABLE run DROP COLUMN points_sha256; ALTER TABLE run DROP COLUMN row_sha256;"
          "PRAGMA user_version = 1");
  const Said said = all_of(*open_history("store", true));
  CHECK(said.points == stored.points);
  CHECK(said.documents == stored.documents);
  CHECK(said.runs.at(0).sha256.empty());
  (void)stored_in("jsonl:lines");
  const std::regex digests(R"~(,"(sha256|device_uuid)":"[^"]*")~");
  write_file("lines/index.jsonl", std::regex_replace(read_file("lines/index.jsonl"), digests, ""));
  CHECK(all_of(*open_history("jsonl:lines", true)) == said);
}

}  // namespace wide::bench
