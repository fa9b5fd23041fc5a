// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Several sweeps of one command: `run --repeat N` and `run --device cuda:0,1`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/commands.hpp"

namespace wide::bench {

/// As many sweeps as are asked for, on each device, each with its files; those that have cases into
/// `runs`. Repeated ones run in a process each, since those of one process are one run to a
/// comparison (compare/compare.hpp).
int run_repeatedly(const GlobalOptions& global, const RunOptions& options,
                   std::vector<RunResult>& runs, std::ostream& out, std::ostream& err);

/// Options that tell the process of a repeated sweep which one it is, and where its result goes.
inline constexpr const char* kRepeatTurn = "--repeat-turn";
inline constexpr const char* kRepeatResult = "--repeat-result";

/// What tells a process of this run how much of its time limit is left; none: it has none.
inline constexpr const char* kTimeLeft = "--time-left";
std::vector<std::string> time_left_words();

/// The words of this run, by the program itself and not by whatever PATH has in its name.
std::vector<std::string> own_command(const GlobalOptions& global, const RunOptions& options);

}  // namespace wide::bench
