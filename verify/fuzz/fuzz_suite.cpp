// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Suites: refused, or entries that each have a name of their own and an op.
#include <set>

#include "bench/suite/suite.hpp"
#include "verify/fuzz/fuzz.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const bench::Suite suite = bench::parse_suite(text, "suite");
  expect(!suite.entries.empty(), "a suite without an entry");
  std::set<std::string> names;
  for (const bench::SuiteEntry& entry : suite.entries) {
    expect(names.insert(entry.name).second, "two entries of a suite with one name");
    expect(!entry.options.selection.ops.empty(), "an entry without an op");
  }
}
