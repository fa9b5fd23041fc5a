// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions as they are defined, in fp64; activations are judged by pointwise's reference.
#include "host/pointwise/binary_reference.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/pointwise/pointwise_reference.hpp"

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< u of the bounds

double evaluate(BinaryFunction function, double x, double other) {
  switch (function) {
    case BinaryFunction::add:
      return x + other;
    case BinaryFunction::subtract:
      return x - other;
    case BinaryFunction::multiply:
      return x * other;
    case BinaryFunction::divide:
      return x / other;
  }
  return 0;
}

/// The activation of the values in y, which are off by up to 2 u |y|.
void activate(const BinaryProblem& problem, PointwiseFunction activation, std::span<double> y,
              std::span<double> tolerance) {
  PointwiseProblem smooth;
  smooth.function = activation;
  smooth.dtype = problem.dtype;
  std::vector<double> moved(y.size()), at_moved(y.size()), ignored(y.size()), spread(y.size());
  std::vector<double> exact(y.begin(), y.end());
  pointwise_reference(smooth, exact, {}, y, tolerance);
  for (const double factor : {1 - 2 * kRoundoff, 1 + 2 * kRoundoff}) {
    for (size_t d = 0; d < y.size(); ++d) moved[d] = exact[d] * factor;
    pointwise_reference(smooth, moved, {}, at_moved, ignored);
    for (size_t d = 0; d < y.size(); ++d) {
      spread[d] = std::max(spread[d], std::fabs(at_moved[d] - y[d]));
    }
  }
  for (size_t d = 0; d < y.size(); ++d) tolerance[d] += spread[d];
}

}  // namespace

void binary_reference(const BinaryProblem& problem, std::span<const double> x,
                      std::span<const double> others, std::span<double> y,
                      std::span<double> tolerance) {
  const bool is_rounded_again = problem.dtype != Dtype::fp32;
  const double roundoff = unit_roundoff(problem.dtype) + (is_rounded_again ? 2 * kRoundoff : 0);
  for (size_t d = 0; d < x.size(); ++d) {
    y[d] = evaluate(problem.function, x[d], others[others.size() == 1 ? 0 : d]);
    tolerance[d] = roundoff * std::fabs(y[d]) + min_subnormal(problem.dtype);
  }
  if (const auto activation = parse_pointwise_function(activation_name(problem.activation))) {
    activate(problem, *activation, y, tolerance);
  }
}

}  // namespace wide::catalog
