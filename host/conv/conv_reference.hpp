// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/conv.hpp"

namespace wide::catalog {

/// One member's operands in fp64, dense, in the problem's layouts.
struct ConvReferenceOperands {
  std::span<const double> x;         ///< [B, C, D, H, W] or [B, D, H, W, C]
  std::span<const double> weight;    ///< [Cout, C/groups, kd, kh, kw], or channels last
  std::span<const double> bias;      ///< [Cout], or empty
  std::span<const double> residual;  ///< as y, or empty
};

/// Where an output lies.
struct ConvOutput {
  int64_t batch = 0, channel = 0, depth = 0, row = 0, column = 0;
};

/// The sum of an output's products, bias and, where it is added before the activation, residual;
/// and the same sum over absolute values, from which error bounds are made.
struct ConvSum {
  double value = 0, magnitude = 0;
  double residual = 0;  ///< at the output
};
ConvSum conv_reference_sum(const ConvProblem& problem, const ConvReferenceOperands& operands,
                           const ConvOutput& output);

}  // namespace wide::catalog
