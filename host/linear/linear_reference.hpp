// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of linear.
#pragma once

#include <span>

#include "wide/linear.hpp"

namespace wide::catalog {

/// One row of one member in fp64: sums[o] = sum_i x[i] * weight[o * in + i] + bias[o], and
/// magnitudes[o], the same sum over absolute values, which error bounds are made of.
/// Layout: x [in], weight [out, in], bias [out] or empty, sums and magnitudes [out].
void linear_reference_row(const LinearProblem& problem, std::span<const double> x,
                          std::span<const double> weight, std::span<const double> bias,
                          std::span<double> sums, std::span<double> magnitudes);

double reference_activation(Activation activation, double value);

}  // namespace wide::catalog
