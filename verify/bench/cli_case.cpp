// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/bench/cli_case.hpp"

#include <cstdlib>
#include <sstream>
#include <vector>

#include "bench/cli/cli.hpp"
#include "bench/process/interrupt.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide::bench {

int wbench(const std::string& line, std::ostream& out, std::ostream& err) {
  std::istringstream stream(line);
  std::vector<std::string> words{"wbench"};
  for (std::string word; stream >> word;) words.push_back(word == "''" ? "" : word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  setenv("COLUMNS", "120", 1);
  const int code = wbench_main(static_cast<int>(argv.size()), argv.data(), out, err);
  set_interrupted(false);
  return code;
}

Outcome wbench(const std::string& line) {
  std::ostringstream out, err;
  const int code = wbench(line, out, err);
  return {code, out.str(), err.str()};
}

std::string tiny_key(int64_t num_members) {
  LinearProblem p{.num_members = num_members, .batch = 2, .in_features = 8, .out_features = 8};
  p.epilogue.has_bias = true;
  return tuning_key(p).problem;
}

}  // namespace wide::bench
