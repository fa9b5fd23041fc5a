// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench as a function: the program and the tests call the same.
#pragma once

#include <iosfwd>

namespace wide::bench {

/// Exit codes; where several apply, the first of 2, 1, 7, 3, 4, 5, 6 wins.
enum ExitCode : int {
  kSuccess = 0,        ///< all requested cases measured and verified
  kRuntimeError = 1,   ///< a case failed, or a file could not be written
  kUsage = 2,          ///< a wrong option, name or value, or what a file holds
  kWrong = 3,          ///< verification failed, or a result is implausible
  kRegression = 4,     ///< a comparison found what --fail-on names
  kInconclusive = 5,   ///< the same of cells that could not be told apart, or are unreliable
  kNothingRan = 6,     ///< nothing matched, or nothing is common
  kEnvironment = 7,    ///< the device asked for is not usable, not the one compared with, does not
                       ///< let its clocks be locked, or fails a self-check; a tool is not there
  kTimedOut = 124,     ///< --time-limit has ended the run; partial results were written
  kInterrupted = 130,  ///< partial results were written
};

int wbench_main(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace wide::bench
