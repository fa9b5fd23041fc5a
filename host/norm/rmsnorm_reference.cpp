// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over one row; shares only the problem struct with what it judges.
#include "host/norm/rmsnorm_reference.hpp"

#include <cmath>

namespace wide::catalog {

void rmsnorm_reference(const RmsnormProblem& problem, std::span<const double> x,
                       std::span<const double> gamma, std::span<double> y,
                       std::span<double> tolerance) {
  const auto count = static_cast<double>(x.size());
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / count + static_cast<double>(problem.epsilon));
  const double bound = (16 + std::sqrt(count)) * unit_roundoff(Dtype::fp32);
  for (size_t d = 0; d < x.size(); ++d) {
    y[d] = x[d] * scale * (gamma.empty() ? 1 : gamma[d]);
    tolerance[d] =
        (bound + unit_roundoff(problem.dtype)) * std::fabs(y[d]) + min_subnormal(problem.dtype);
  }
}

}  // namespace wide::catalog
