// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/interpolate.hpp"

namespace wide::catalog {

/// Where an output of an axis lies, from 0 to in - 1.
double interpolate_position(CoordinateMode mode, int64_t output, int64_t in, int64_t out,
                            float scale);

/// Row `row` of y in fp64, and the largest error that passes; x is one member's, dense, in the
/// problem's layout: [B, C, H, W], of whose y a row is [OW], or [B, H, W, C], of whose y it is [C].
///
/// Bound, with u = 2^-24: of each axis, a weight is rounded down by less than u, and a value goes
/// through two roundings, so with weights w of up to four neighbours, D the largest difference
/// between two of them
///   4 u sum w |x| (1 + u)^3 + 2 u D + u_out |y| + 2 min
void interpolate_reference(const InterpolateProblem& problem, std::span<const double> x,
                           int64_t row, std::span<double> y, std::span<double> tolerance);

}  // namespace wide::catalog
