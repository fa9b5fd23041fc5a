// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Other differences between the two sides of a comparison, which may explain what it finds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"

namespace wide::bench {

/// A sentence each, without a full stop: other units of the same model, hosts, builds and flags,
/// other values of operands, other clocks, cold calls that were made cold by different methods,
/// other versions of an op or other work, runs that were cut short, and outputs that nobody
/// checked.
std::vector<std::string> notes_of(const Comparison& comparison, std::span<const RunResult> base,
                                  std::span<const RunResult> candidate);

/// Says that runs of one process, or the same runs, are on both sides; empty if none are. Throws
/// invalid_argument if all are the same: they cannot differ, which is no finding.
std::string shared_runs_note(std::span<const RunResult> base, std::span<const RunResult> candidate);

/// Says that no cell of both sides got a verdict, and what it takes; empty if one did.
std::string unjudged_note(const Comparison& comparison);

}  // namespace wide::bench
