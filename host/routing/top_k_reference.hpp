// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "wide/top_k.hpp"

namespace wide::catalog {

/// One row in fp64: the members chosen, and their gates with the largest error that passes.
///
/// Bound, with u = 2^-24, d = s - max: of a softmax as softmax_reference has it, over the scores
/// that are added up, (2 (|d| + A + 16 + sqrt(count)) + 1) u y + min + 2^-140, A = sum |d| exp(d) /
/// sum exp(d); of the sigmoid as pointwise_reference has it, (17 + 4 max(-s, 0)) u y + 2^-119; a
/// score is what it is: 0.
void top_k_reference(const TopKProblem& problem, std::span<const double> scores,
                     std::span<int64_t> ids, std::span<double> gates, std::span<double> tolerance);

}  // namespace wide::catalog
