// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over one row; shares only the problem struct with what it judges.
#include "host/norm/layernorm_reference.hpp"

#include <cmath>

namespace wide::catalog {

void layernorm_reference(const LayernormProblem& problem, std::span<const double> x,
                         std::span<const double> gamma, std::span<const double> beta,
                         std::span<double> y, std::span<double> tolerance) {
  const auto count = static_cast<double>(x.size());
  double mean = 0;
  for (const double value : x) mean += value;
  mean /= count;
  double variance = 0;
  for (const double value : x) variance += (value - mean) * (value - mean);
  variance /= count;
  const double scale = 1 / std::sqrt(variance + static_cast<double>(problem.epsilon));
  constexpr double u = unit_roundoff(Dtype::fp32);
  const double c = 16 + std::sqrt(count);
  for (size_t d = 0; d < x.size(); ++d) {
    const double g = gamma.empty() ? 1 : gamma[d], b = beta.empty() ? 0 : beta[d];
    const double product = g * (x[d] - mean) * scale;
    y[d] = product + b;
    const double statistics =
        std::fabs(g) * scale * (std::fabs(x[d] - mean) + std::sqrt(variance)) * c * u;
    tolerance[d] = statistics + 4 * u * (std::fabs(product) + std::fabs(b)) +
                   unit_roundoff(problem.dtype) * std::fabs(y[d]) + min_subnormal(problem.dtype);
  }
}

}  // namespace wide::catalog
