// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/pointwise.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes; prelu's slopes: one, or one per feature.
///
/// Bound, with u = 2^-24: relu and clamp choose, leaky_relu, prelu and hardswish round a few times:
/// 4 u |y|. The smooth ones take functions of a few u (PTX's ex2.approx 4 and rcp.approx 2, CUDA's
/// tanhf 4 and expm1f 2) of an argument that was itself rounded: an error e of exp's argument is
/// one of e of the result, so that (16 + 4 |z|) u |y| passes, z the argument of exp (gelu: erfc
/// falls as exp(-x^2 / 2); silu and sigmoid: below zero, as they fall as exp(x)). Below 2^-119 exp
/// has under- or overflowed.
///   error + u_out |y| + min
void pointwise_reference(const PointwiseProblem& problem, std::span<const double> x,
                         std::span<const double> slopes, std::span<double> y,
                         std::span<double> tolerance);

}  // namespace wide::catalog
