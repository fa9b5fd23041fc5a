// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two builds measured against each other: their processes take turns (A B B A ..), so that whatever
// drifts, drifts for both.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

struct Rerun {
  std::string base, candidate;         ///< executables: wbench of either build
  std::vector<std::string> arguments;  ///< of their `run`
  int64_t runs = 5;                    ///< of each
};

/// `EXECUTABLE run ARGUMENTS --json FILE -q`, as often as asked for; what they print on standard
/// output is dropped. Throws io where an executable cannot be started or leaves no result. Fewer
/// runs where an interrupt came.
std::pair<std::vector<RunResult>, std::vector<RunResult>> run_by_turns(const Rerun& rerun,
                                                                       std::ostream& err);

}  // namespace wide::bench
