// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over one row; shares only the problem struct with what it judges.
#include "host/pointwise/softmax_reference.hpp"

#include <algorithm>
#include <cmath>

namespace wide::catalog {

void softmax_reference(const SoftmaxProblem& problem, std::span<const double> x,
                       std::span<double> y, std::span<double> tolerance) {
  constexpr double u = unit_roundoff(Dtype::fp32);
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0, weighted = 0;
  for (const double value : x) {
    const double power = std::exp(value - largest);
    sum += power;
    if (power > 0) weighted += (largest - value) * power;
  }
  const double common = weighted / sum + 16 + std::sqrt(static_cast<double>(x.size()));
  const double u_out = unit_roundoff(problem.dtype), least = min_subnormal(problem.dtype);
  for (size_t d = 0; d < x.size(); ++d) {
    const double difference = x[d] - largest;
    y[d] = problem.is_log ? difference - std::log(sum) : std::exp(difference) / sum;
    const double error = std::isinf(difference) ? 0 : 2 * u * (std::fabs(difference) + common);
    tolerance[d] = problem.is_log ? error + 2 * u * std::fabs(std::log(sum)) +
                                        (std::isinf(y[d]) ? 0 : u_out * std::fabs(y[d])) + least
                                  : error * y[d] + u_out * y[d] + least + 0x1p-140;
  }
}

}  // namespace wide::catalog
