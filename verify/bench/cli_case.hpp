// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Command lines, run in this process, for the tests of wbench.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "bench/cli/cli.hpp"
#include "bench/process/interrupt.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide::bench {

struct Outcome {
  int code = 0;
  std::string out, err;
};

/// Runs a command line; the words are separated by spaces, '' is an empty one.
inline Outcome wbench(const std::string& line) {
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
inline const std::string kShort =
    " --device cpu -q --warmup-time 0 --rounds 3 --min-samples 3 --max-samples 6 --color never ";
inline const std::string kTiny = "--op linear --n 2 --batch 2 --d 8" + kShort;
/// What files of tuned choices call it, with that many members.
inline std::string tiny_key(int64_t num_members = 2) {
  LinearProblem p{.num_members = num_members, .batch = 2, .in_features = 8, .out_features = 8};
  p.epilogue.has_bias = true;
  return tuning_key(p).problem;
}

}  // namespace wide::bench
