// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/chain.hpp"

namespace wide::catalog {

/// One row of a chain's operands; absent ones are empty.
struct ChainRow {
  std::span<const double> x, bias, residual, gamma, beta;
};

/// One row in fp64, and the largest error that passes.
///
/// Bound, with u = 2^-24, s = residual + activation(v), v = x + bias: the sum that is normalised
/// errs by e = u_out |s| + min, its rounding, and by earlier errors,
///   u (L |v| + |s|) + a, L the activation's steepest slope, a what pointwise_reference passes of a
/// gelu, gelu_tanh or silu in fp32. By the derivative of a norm with factors g and scale t = 1 /
/// sqrt(variance + epsilon), errors of mean square E^2 move the result by at most t |g| (e + E +
/// |n| E), n the normalised value, and a second-order term that (1 + 2 t E) covers; the norm's own
/// bound is added.
void chain_reference(const ChainProblem& problem, const ChainRow& row, std::span<double> y,
                     std::span<double> tolerance);

}  // namespace wide::catalog
