// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench in a program whose locale has decimal commas reads and writes what it does without.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "verify/bench/cli_case.hpp"
#include "verify/support/comma_locale.hpp"

namespace wide::bench {

TEST_CASE("the locale that is tested with has commas") {
  const test::CommaLocale commas;
  char number[8];
  (void)std::snprintf(number, sizeof(number), "%.1f", 1.5);
  CHECK(std::string(number) == "1,5");
  std::ostringstream out;
  out << 1234.5;
  CHECK(out.str() == "1.234,5");
}

TEST_CASE("no output depends on the program's locale") {
  const std::string results = std::string(WIDE_SOURCE_DIR) + "/verify/bench/results/";
  const std::string line =
      GENERATE("show FILE --color never", "show FILE --export csv=-", "report FILE --md -",
               "show FILE --export jsonl=-", "compare FILE OTHER --color never --all",
               "compare FILE OTHER --format json", "report FILE --html -", "list tolerances",
               "list presets --json -",
               "run --op linear --n 2:4096:x2 --batch 2K --d 8 -d cpu --target-ci 0.5% --dry-run",
               "suite validate ci", "quantize --out 64 --in 1024 --json -");
  std::string words = line;
  for (const auto& [name, file] :
       {std::pair("FILE", "1.14.json"), std::pair("OTHER", "1.11.json")}) {
    for (size_t at; (at = words.find(name)) != std::string::npos;)
      words.replace(at, std::strlen(name), results + file);
  }
  INFO(line);
  const Outcome plain = wbench(words);
  CHECK(!plain.out.empty());
  const test::CommaLocale commas;
  const Outcome with_commas = wbench(words);
  CHECK(with_commas.code == plain.code);
  CHECK(with_commas.err == plain.err);
  CHECK(with_commas.out == plain.out);
}

}  // namespace wide::bench
