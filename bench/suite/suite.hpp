// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A suite: runs that belong together, written down in a JSON file (suite.schema.json). Its entries
// are what `run` takes on the command line, so that each can be repeated by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/commands.hpp"
#include "bench/suite/threshold.hpp"

namespace wide::bench {

struct SuiteEntry {
  std::string name;   ///< unique in the suite, and fit for a file
  std::string where;  ///< "ci.json: $.entries[2]", for complaints
  RunOptions options;
  std::vector<Threshold> thresholds;
};

struct Suite {
  std::string name, description;
  std::vector<SuiteEntry> entries;  ///< "op": "all" stands for one of every primitive
};

/// `source` begins every complaint. Throws invalid_argument for what is no suite: unknown keys,
/// too, since a misspelt one would be a default without a word.
Suite parse_suite(std::string_view text, const std::string& source);

/// A shipped suite by its name, or a file by its path; "-" is standard input. What has a slash or
/// ends in .json is a path. Throws invalid_argument for an unknown name, io for a file.
Suite load_suite(const std::string& name_or_path);

struct ShippedSuite {
  std::string_view name, text;
};
/// Those of bench/suites, which are part of the program.
std::vector<ShippedSuite> shipped_suites();

/// What `run` is typed as for these options, as far as a suite can say them.
std::vector<std::string> run_words(const RunOptions& options);

/// Cases of an entry, and points that no case can be made of. Throws invalid_argument for what
/// `run` would refuse, and where no case is left.
struct EntrySize {
  int64_t cases = 0, impossible = 0;
};
EntrySize size_of(const SuiteEntry& entry);

}  // namespace wide::bench
