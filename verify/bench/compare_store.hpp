// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results in folders, for the tests of the command compare.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "bench/document/result_json.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"

namespace wide::bench {

/// Folders base and candidate with a file for every run.
struct Store {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("wide-compare-" + std::to_string(::getpid()) + "-" + std::to_string(std::rand()));
  ~Store() { std::filesystem::remove_all(path); }
  /// Runs of one side are others than those of another, of which their ids are.
  void put(const std::string& side, std::vector<RunResult> runs) const {
    std::filesystem::create_directories(path / side);
    for (RunResult& run : runs) run.id += "-" + side;
    for (size_t i = 0; i < runs.size(); ++i)
      write_file(path / side / (std::to_string(i) + ".json"), to_json(consistent(runs[i])).dump());
  }
  Outcome compare(const std::string& sides, const std::string& options = "") const {
    std::string line = "compare --color never " + options;
    std::istringstream names(sides);
    for (std::string name; names >> name;) line += " " + (path / name).string();
    return wbench(line);
  }
};

}  // namespace wide::bench
