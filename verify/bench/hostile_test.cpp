// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bad input by the thousand: for every axis of every primitive and every option that takes a value,
// what cannot be meant is refused with a message that names it, and nothing is run or written.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <sstream>

#include "bench/cases/value_spec.hpp"
#include "bench/cli/cli.hpp"
#include "bench/process/exit_code.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/catalog.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

/// No value of any axis, nor any list of values.
const std::vector<std::string> kNoValues = {
    "",
    ",",
    ",4",
    "4,",
    "4,,8",
    " ",
    "\t",
    ":",
    "4:",
    ":4",
    "8:4",
    "4:8:0",
    "4:8:-1",
    "1:2:3:4",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e3",
    "4.5",
    "0x10",
    "+4",
    "4 8",
    "4;8",
    "--4",
    "4-8",
    "\x01",
    "\xff\xfe",
    "4\n8",
    "1:999999999",
    "99999999999999999999",
    "-99999999999999999999",
    "9223372036854775808",
    "2^64",
    "2^-1",
    "^",
    "4^",
    "quik",
    "$(id)",
    "';--",
    "../../etc",
    "</script>",
    "%s%n",
    "1_000",
    "\xd9\xa3",
    "0:1e9:1",
    std::string(100'000, '4'),
};

}  // namespace

TEST_CASE("no axis of any primitive takes what is no value") {
  int64_t refused = 0;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    for (const catalog::AxisInfo& axis : spec->axes) {
      for (const std::string& text : kNoValues) {
        INFO(spec->name << " --" << axis.name << " " << text.substr(0, 40));
        for (const bool powers : {false, true}) {
          try {
            const auto values = parse_values(axis, text, powers);
            FAIL_CHECK("taken as " << values.size() << " values");
          } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            if (std::string_view(error.what()).find(axis.name) == std::string_view::npos)
              FAIL_CHECK("the message does not name the axis: " << error.what());
            ++refused;
          }
        }
      }
    }
  }
  CHECK(refused > 10'000);
}

TEST_CASE("no option of a run takes what is no value, and nothing is written") {
  const test::TemporaryFolder folder;
  for (const char* option :
       {"--op", "-p", "-a", "--strategy", "--skip", "--baseline", "--regime", "--rounds", "-d",
        "--min-samples", "--max-samples", "--target-ci", "--stop", "--seed", "--n", "--dtype"}) {
    for (const std::string& text : kNoValues) {
      if (text.find_first_of(" \t\n'$") != std::string::npos || text.empty()) continue;
      const bool is_number = std::string(option) == "--seed" || std::string(option) == "--rounds";
      if (is_number && text.size() < 5) continue;  // CLI11's numbers may have signs and bases
      if (std::string(option) == "--target-ci" && text == "4.5") continue;  // percent
      INFO(option << " " << text.substr(0, 40));
      const Outcome o =
          wbench("run --device cpu --dry-run --op linear " + std::string(option) + "=" + text);
      CHECK(o.code == kUsage);
      CHECK(!o.err.empty());
      CHECK(o.err.size() < 3'000);
      CHECK(o.err.find('\x01') == std::string::npos);  // nothing that a terminal would obey
    }
  }
  CHECK(std::filesystem::is_empty("."));
}

TEST_CASE("a message that quotes lines is one line") {
  const test::TemporaryFolder folder;
  const auto message_of = [](const std::vector<const char*>& words) {
    std::vector<const char*> argv{"wbench"};
    argv.insert(argv.end(), words.begin(), words.end());
    std::ostringstream out, err;
    CHECK(wbench_main(static_cast<int>(argv.size()), argv.data(), out, err) != kSuccess);
    const std::string text = err.str();
    CHECK(text.find('\n') == text.size() - 1);
    CHECK(text.find_first_of("\r\t\x1b") == std::string::npos);
    return text;
  };
  CHECK_THAT(message_of({"run", "--op", "lin\near"}), ContainsSubstring("\"lin\\near\""));
  CHECK_THAT(message_of({"run", "--op", "linear", "--n", "4\r\tx\x1b"}),
             ContainsSubstring("\"4\\r\\tx\\x1b\""));
  CHECK_THAT(message_of({"show", "a\nb"}), ContainsSubstring("cannot read a\\nb: "));
  CHECK_THAT(message_of({"history", "a\nb"}), ContainsSubstring("\"a\\nb\""));
  CHECK_THAT(message_of({"run", "--op", "linear", "-d", "cpu", "--filter", "a\nb"}),
             ContainsSubstring("no case matches --filter \"a\\nb\""));
}

}  // namespace wide::bench
