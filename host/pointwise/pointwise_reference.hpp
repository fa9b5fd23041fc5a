// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/pointwise.hpp"

namespace wide::catalog {

/// One row in fp64, and the largest error that passes; prelu's slopes: one, or one per feature.
///
/// Bound, with u = 2^-24: what is chosen passes as it is alone (x by relu and clamp, by leaky_relu,
/// prelu and elu above 0; a bound by clamp; 0, by hardswish up to -3, too), but for the
/// rounding of a bound that the dtype does not hold. Elsewhere leaky_relu, prelu and hardswish
/// round a few times: 4 u |y|. The smooth ones take functions of a few u (PTX's ex2.approx 4 and
/// rcp.approx 2, CUDA's tanhf 4 and expm1f 2) of an argument that was itself rounded: an error e of
/// exp's argument is one of e of the result, so that (16 + 4 z) u |y| passes where, below zero,
/// functions fall as exp(-z) (gelu: as erfc, z = x^2 / 2). Above zero z is 0: they are x or 1 but
/// for a part that falls as exp(-t), and t exp(-t) is at most 0.37. Below 2^-119 exp has
/// underflowed.
///   0, or error + u_out |y| + min
void pointwise_reference(const PointwiseProblem& problem, std::span<const double> x,
                         std::span<const double> slopes, std::span<double> y,
                         std::span<double> tolerance);

}  // namespace wide::catalog
