// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether a result's numbers agree with one another: a file that was edited, or joined from parts
// of others, has right types and ranges, and says what nobody measured.
#pragma once

#include "bench/document/result.hpp"

namespace wide::bench {

/// Throws invalid_argument with the place, what it has and what was expected, unless:
///   samples have the statistics n, minimum, quartiles and maximum, and each its own place in the
///   order of its case; speedups are those of the rounds' medians, rates and percentages those of
///   the case's work and floor; values lie in their intervals, and probabilities are at most 1;
///   what is "ok" was not found wrong; a CPU has no other regime than cpu; a case's id is of its
///   axes.
/// What is not in the result, such as samples stored elsewhere, is not checked.
void require_consistent(const RunResult& result);

}  // namespace wide::bench
