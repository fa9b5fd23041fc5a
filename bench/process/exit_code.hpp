// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the program's exit code says of a run.
#pragma once

#include "bench/document/result.hpp"

namespace wide::bench {

/// Exit codes; where several apply, the first of 2, 1, 7, 3, 4, 5, 6 wins.
enum ExitCode : int {
  kSuccess = 0,        ///< all requested cases measured and verified
  kRuntimeError = 1,   ///< a case failed, or a file could not be written
  kUsage = 2,          ///< a wrong option, name or value, or wrong content of a file
  kWrong = 3,          ///< verification failed, or a result is implausible
  kRegression = 4,     ///< a comparison found a verdict that --fail-on names
  kInconclusive = 5,   ///< the same for cells that are inconclusive or unreliable
  kNothingRan = 6,     ///< no case matched, or the two sides have none in common
  kEnvironment = 7,    ///< the requested device is unusable, is not the one compared with, does not
                       ///< let its clocks be locked, or fails a self-check; or a tool is missing
  kTimedOut = 124,     ///< --time-limit has ended the run; partial results were written
  kInterrupted = 130,  ///< partial results were written
};

/// The exit code that wins if several apply.
int worse_code(int a, int b);
/// Whether the code says that a signal or the time limit ended a run.
bool is_cut_short(int code);

/// The exit code of the run's cases; interrupted counts first, then the first of 1, 3, 6, 0.
int exit_code_of(const RunResult& result, bool was_interrupted);

}  // namespace wide::bench
