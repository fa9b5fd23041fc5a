// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/dropout.hpp"

namespace wide::catalog {

/// What a member draws by.
struct DropoutReferenceMember {
  int64_t seed, sequence;
  double probability;
};

/// Row `row` of one member in fp64, and the largest error that passes.
///
/// Bound, with u = 2^-24: a dropped element is exactly 0. Where 1 - p is a power of two, so are the
/// reciprocal and the factor, at least 1: the product keeps x's significant bits, subnormals' too,
/// and 0 passes. Elsewhere the difference, the reciprocal and the product are rounded.
///   3 u |y| + u_out |y| + min
void dropout_reference(const DropoutProblem& problem, const DropoutReferenceMember& member,
                       int64_t row, std::span<const double> x, std::span<double> y,
                       std::span<double> tolerance);

}  // namespace wide::catalog
