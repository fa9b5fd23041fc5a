// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Command lines: an argument a line, behind what keeps them from running anything. All ends with an
// exit code of ours, and whatever is not a success says something.
#include <sstream>
#include <vector>

#include "bench/cli/cli.hpp"
#include "bench/process/exit_code.hpp"
#include "verify/fuzz/fuzz.hpp"

void wide::fuzz::one_input(std::string_view text) {
  std::vector<std::string> arguments = {"wbench", "run", "--device", "cpu", "--dry-run"};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    arguments.emplace_back(text.substr(begin, end - begin));
    arguments.back() = arguments.back().c_str();  // an argument ends at a zero byte
    begin = end + 1;
  }
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  std::ostringstream out, err;
  const int code = bench::wbench_main(static_cast<int>(pointers.size()), pointers.data(), out, err);
  expect(code == bench::kSuccess || code == bench::kUsage || code == bench::kNothingRan ||
             code == bench::kRuntimeError,
         "an exit code that a dry run does not have");
  if (code == bench::kSuccess) return;
  expect(err.tellp() > 0, "a failure without a word");
  throw Error(ErrorCode::invalid_argument, err.str());
}
