// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own tensors. Knows no strides, tiles or strategies.
#include "host/linear/linear_reference.hpp"

#include <cmath>
#include <numbers>

namespace wide::catalog {

void linear_reference_row(const LinearProblem& problem, std::span<const double> x,
                          std::span<const double> weight, std::span<const double> bias,
                          std::span<double> sums, std::span<double> magnitudes) {
  const auto in = static_cast<size_t>(problem.in_features);
  const auto out = static_cast<size_t>(problem.out_features);
  for (size_t o = 0; o < out; ++o) {
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < in; ++i) {
      const double product = x[i] * weight[o * in + i];
      sum += product;
      magnitude += std::fabs(product);
    }
    if (problem.epilogue.has_bias) {
      sum += bias[o];
      magnitude += std::fabs(bias[o]);
    }
    sums[o] = sum;
    magnitudes[o] = magnitude;
  }
}

double reference_activation(Activation activation, double value) {
  switch (activation) {
    case Activation::none:
      return value;
    case Activation::relu:
      return std::isnan(value) || value > 0 ? value : 0.0;
    case Activation::gelu:
      return value / 2 * std::erfc(-value / std::numbers::sqrt2);
    case Activation::silu:
      return value / (1 + std::exp(-value));
  }
  return value;
}

}  // namespace wide::catalog
