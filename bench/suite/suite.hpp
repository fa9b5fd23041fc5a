// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A suite: runs that belong together, defined in a JSON file (suite.schema.json). Its entries
// are what `run` takes on the command line, so that each can be repeated by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/command/options.hpp"
#include "bench/suite/threshold.hpp"

namespace wide::bench {

struct SuiteEntry {
  std::string name;   ///< unique in the suite, and valid in a file name
  std::string where;  ///< "ci.json: $.entries[2]", for error messages
  RunOptions options;
  std::vector<Threshold> thresholds;
};

struct Suite {
  std::string name, description;
  std::vector<SuiteEntry> entries;  ///< "op": "all" stands for one entry per primitive
};

/// `source` begins every error message. Throws invalid_argument for an invalid suite, including
/// unknown keys, since a misspelt one would silently be a default.
Suite parse_suite(std::string_view text, const std::string& source);

/// A shipped suite by its name, or a file by its path; "-" is standard input. A name with a slash
/// or ending in .json is a path. Throws invalid_argument for an unknown name, io for a file.
Suite load_suite(const std::string& name_or_path);

struct ShippedSuite {
  std::string_view name, text;
};
/// The suites of bench/suites, which are part of the program.
std::vector<ShippedSuite> shipped_suites();

/// The `run` command line for these options, as far as a suite can express them.
std::vector<std::string> run_words(const RunOptions& options);

/// Cases of an entry, and impossible points. Throws invalid_argument for what
/// `run` would refuse, and if no case is left.
struct EntrySize {
  int64_t cases = 0, impossible = 0;
};
EntrySize size_of(const SuiteEntry& entry);

}  // namespace wide::bench
