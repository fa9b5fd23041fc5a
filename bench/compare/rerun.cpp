// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/rerun.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "bench/commands.hpp"
#include "bench/interrupt.hpp"
#include "bench/result_json.hpp"
#include "bench/run_program.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

RunResult run_once(const std::string& executable, const Rerun& rerun, const std::string& file) {
  std::vector<std::string> words{executable, "run"};
  words.insert(words.end(), rerun.arguments.begin(), rerun.arguments.end());
  for (const char* word : {"--json", file.c_str(), "-q"}) words.emplace_back(word);
  const int code = run_program(words, true);
  // What was wrong or failed is in the result, for the comparison to say.
  if (!std::filesystem::exists(file)) {
    throw Error(ErrorCode::io,
                fmt::format("{} ended with exit code {} and left no result", executable, code));
  }
  return load_result(file);
}

}  // namespace

std::pair<std::vector<RunResult>, std::vector<RunResult>> run_by_turns(const Rerun& rerun,
                                                                       std::ostream& err) {
  const TemporaryFolder folder;
  install_interrupt_handler();
  std::vector<RunResult> base, candidate;
  for (int64_t i = 0; i < 2 * rerun.runs && !is_interrupted(); ++i) {
    const bool is_candidate = i % 4 == 1 || i % 4 == 2;
    const std::string& executable = is_candidate ? rerun.candidate : rerun.base;
    err << fmt::format("[{}/{}] {}\n", i + 1, 2 * rerun.runs, executable) << std::flush;
    const RunResult result =
        run_once(executable, rerun, fmt::format("{}/{}.json", folder.path(), i));
    if (is_cut_short(result.exit_code)) break;
    (is_candidate ? candidate : base).push_back(result);
  }
  return {base, candidate};
}

}  // namespace wide::bench
