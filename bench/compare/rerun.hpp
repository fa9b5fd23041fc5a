// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two builds measured against each other: their processes take turns (A B B A ..), so that drift
// affects both alike.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

struct Rerun {
  std::string base, candidate;         ///< executables: each build's wbench
  std::vector<std::string> arguments;  ///< of their `run`
  int64_t runs = 5;                    ///< of each
};

struct RerunOutcome {
  std::vector<RunResult> base, candidate;  ///< of runs that finished
  /// 130 or 124 if an interrupt, or a run's time limit, cut them short; 2, 6 or 7 if a run left no
  /// result and ended so, for its arguments or for want of a device.
  int code = 0;
};

/// Runs `EXECUTABLE run ARGUMENTS --json FILE -q` as often as requested; standard output of these
/// is dropped. Throws io, before any is run, if an executable cannot be started, or if one failed
/// and left no result, and invalid_argument for --repeat among the arguments, whose results have
/// names of their own.
RerunOutcome run_by_turns(const Rerun& rerun, std::ostream& progress, std::ostream& err);

}  // namespace wide::bench
