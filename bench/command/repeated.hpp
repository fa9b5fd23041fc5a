// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Several sweeps of one command: `run --repeat N` and `run --device cuda:0,1`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/command/options.hpp"

namespace wide::bench {

/// Runs as many sweeps as requested, on each device, each with its files; those that have cases are
/// added to `runs`. Repeated ones run in a process each, because runs of one process count as one
/// run in a comparison (compare/compare.hpp).
int run_repeatedly(const GlobalOptions& global, const RunOptions& options,
                   std::vector<RunResult>& runs, std::ostream& out, std::ostream& err);

/// Options that give the process of a repeated sweep its number, and the file for its result.
inline constexpr const char* kRepeatTurn = "--repeat-turn";
inline constexpr const char* kRepeatResult = "--repeat-result";

/// Tells a process of this run how much of its time limit is left; empty without a limit.
inline constexpr const char* kTimeLeft = "--time-left";
std::vector<std::string> time_left_words();

/// The words of this run, starting with the path of this program, so that PATH does not matter.
std::vector<std::string> own_command(const GlobalOptions& global, const RunOptions& options);

}  // namespace wide::bench
