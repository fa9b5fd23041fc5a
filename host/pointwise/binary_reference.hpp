// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/binary.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes; others: one, or one for each of x.
///
/// Bound, with u = 2^-24: z = function(x, other) is rounded once, u |z|, and again to 16 bits,
/// u |z| + u_out |z|: a quotient of an approximate reciprocal does not pass. Activations are
/// pointwise's functions, with pointwise's bound plus the effect of an argument that is off by
/// 2 u |z|.
void binary_reference(const BinaryProblem& problem, std::span<const double> x,
                      std::span<const double> others, std::span<double> y,
                      std::span<double> tolerance);

}  // namespace wide::catalog
