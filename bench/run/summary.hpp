// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a sweep shows about a primitive as a whole. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// One summary per op, regime and baseline that has speedups.
std::vector<OpSummary> summarize(std::span<const CaseResult> cases);

/// The definitions, for --help.
std::string summary_definitions();

}  // namespace wide::bench
