// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/compare/rerun.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <utility>

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// How a process ended, and its result unless it was cut short.
struct Turn {
  int code = kSuccess;
  std::optional<RunResult> result;
};

/// Whether all other turns would end so, too: a usage error, nothing that runs, no device.
bool is_of_arguments(int code) {
  return code == kUsage || code == kNothingRan || code == kEnvironment;
}

Turn take_turn(const std::string& executable, const Rerun& rerun, const std::string& file,
               std::ostream& err) {
  std::vector<std::string> words{executable, "run"};
  words.insert(words.end(), rerun.arguments.begin(), rerun.arguments.end());
  for (const char* word : {"--json", file.c_str(), "-q"}) words.emplace_back(word);
  const int code = run_program(words, true);
  if (is_cut_short(code)) return {code, std::nullopt};
  if (std::filesystem::exists(file)) {
    // Wrong or failed cases are in the result, for the comparison to report.
    RunResult result = load_result(file);
    if (is_cut_short(result.exit_code)) return {result.exit_code, std::nullopt};
    return {kSuccess, std::move(result)};
  }
  // A signal may have ended it before its handler was installed.
  if (is_interrupted()) return {kInterrupted, std::nullopt};
  const std::string how =
      fmt::format("{} ended with exit code {} and left no result", executable, code);
  if (!is_of_arguments(code)) throw Error(ErrorCode::io, how);
  err << "wbench: compare: " << how << "\n";
  return {code, std::nullopt};
}

void require_one_result(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word != "--repeat" && !word.starts_with("--repeat=")) continue;
    throw Error(ErrorCode::invalid_argument,
                "compare --rerun: --repeat is after --, expected before it: it is compare's, "
                "whose runs take turns");
  }
}

}  // namespace

RerunOutcome run_by_turns(const Rerun& rerun, std::ostream& progress, std::ostream& err) {
  require_one_result(rerun.arguments);
  for (const std::string& executable : {rerun.base, rerun.candidate}) require_program(executable);
  const TemporaryFolder folder;
  install_interrupt_handler();
  RerunOutcome outcome;
  for (int64_t i = 0; i < 2 * rerun.runs && outcome.code == kSuccess; ++i) {
    const bool is_candidate = i % 4 == 1 || i % 4 == 2;
    const std::string& executable = is_candidate ? rerun.candidate : rerun.base;
    progress << fmt::format("[{}/{}] {}\n", i + 1, 2 * rerun.runs, executable) << std::flush;
    Turn turn = take_turn(executable, rerun, fmt::format("{}/{}.json", folder.path(), i), err);
    if (turn.result)
      (is_candidate ? outcome.candidate : outcome.base).push_back(std::move(*turn.result));
    outcome.code = is_interrupted() ? kInterrupted : turn.code;
  }
  return outcome;
}

}  // namespace wide::bench
