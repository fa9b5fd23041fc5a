// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own tensors. Knows no strides, tiles or strategies.
#include "host/linear/linear_reference.hpp"

#include <cmath>
#include <numbers>

namespace wide::catalog {

void linear_reference_row(const LinearProblem& problem, const LinearReferenceRow& row,
                          std::span<double> values, std::span<double> magnitudes) {
  const auto in = static_cast<size_t>(problem.in_features);
  const auto out = static_cast<size_t>(problem.out_features);
  for (size_t o = 0; o < out; ++o) {
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < in; ++i) {
      const double product = row.x[i] * row.weight[o * in + i];
      sum += product;
      magnitude += std::fabs(product);
    }
    double factor = static_cast<double>(problem.epilogue.alpha);
    if (!row.scale.empty()) factor *= row.scale[row.scale.size() == 1 ? 0 : o];
    sum *= factor;
    magnitude *= std::fabs(factor);
    const auto add = [&](std::span<const double> operand) {
      if (operand.empty()) return;
      sum += operand[o];
      magnitude += std::fabs(operand[o]);
    };
    add(row.bias);
    if (problem.epilogue.residual == Residual::before_activation) add(row.residual);
    values[o] = sum;
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
