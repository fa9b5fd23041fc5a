// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What two sides of a comparison differ in that is not what is compared, and may be what shows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"

namespace wide::bench {

/// A sentence each, without a full stop: other units of the same model, other values of operands,
/// other clocks, and cold calls that were not cold in the same way.
std::vector<std::string> notes_of(const Comparison& comparison, std::span<const RunResult> base,
                                  std::span<const RunResult> candidate);

/// That no cell of both sides got a verdict, and what would give it one; empty where one did.
std::string unjudged_note(const Comparison& comparison);

}  // namespace wide::bench
