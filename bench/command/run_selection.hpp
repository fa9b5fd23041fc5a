// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One sweep as `run` and other commands make it: selected, run, written, judged.
#pragma once

#include <iosfwd>

#include "bench/command/options.hpp"

namespace wide::bench {

/// One sweep without comparison or repetition; returns the exit code. `result` is what there is of
/// it.
int run_selection(const GlobalOptions& global, RunOptions options, RunResult& result,
                  std::ostream& out, std::ostream& err);

/// Captures one call of everything selected, to record its launches, and runs nothing else; returns
/// the exit code. Only a dry run prints to `out`: its cases.
int capture_selection(const GlobalOptions& global, RunOptions options, RunResult& result,
                      std::ostream& out, std::ostream& err);

}  // namespace wide::bench
