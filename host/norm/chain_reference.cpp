// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over one row; the norms are judged as by themselves.
#include "host/norm/chain_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "host/linear/linear_reference.hpp"
#include "host/norm/layernorm_reference.hpp"
#include "host/norm/rmsnorm_reference.hpp"
#include "host/pointwise/pointwise_reference.hpp"

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< u of the bounds
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The sum, and how far the stored one may be off.
void add_up(const ChainProblem& p, const ChainRow& row, std::span<double> sums,
            std::span<double> errors) {
  const bool computes = is_smooth(p.activation);
  const bool is_plain = row.bias.empty() && row.residual.empty() && !computes;
  PointwiseProblem smooth;
  if (computes) smooth.function = *parse_pointwise_function(activation_name(p.activation));
  for (size_t d = 0; d < sums.size(); ++d) {
    double v = row.x[d] + (row.bias.empty() ? 0 : row.bias[d]);
    // The activations' limit: neither the value nor its error remains.
    if (p.activation != Activation::none && v == -kInfinity) v = 0;
    double a = reference_activation(p.activation, v), of_activation = 0;
    if (computes) pointwise_reference(smooth, {&v, 1}, {}, {&a, 1}, {&of_activation, 1});
    sums[d] = a + (row.residual.empty() ? 0 : row.residual[d]);
    const double magnitude = std::fabs(sums[d]);
    errors[d] = is_plain ? 0
                         : kRoundoff * (steepest_slope(p.activation) * std::fabs(v) + magnitude) +
                               of_activation + unit_roundoff(p.dtype) * magnitude +
                               min_subnormal(p.dtype);
  }
}

}  // namespace

void chain_reference(const ChainProblem& p, const ChainRow& row, std::span<double> y,
                     std::span<double> tolerance) {
  const size_t count = row.x.size();
  std::vector<double> sums(count), errors(count);
  add_up(p, row, sums, errors);
  if (p.norm == ChainNorm::none) {
    std::copy(sums.begin(), sums.end(), y.begin());
    std::copy(errors.begin(), errors.end(), tolerance.begin());
    return;
  }
  double mean = 0, square = 0, error_square = 0;
  for (size_t d = 0; d < count; ++d) {
    mean += sums[d] / static_cast<double>(count);
    error_square += errors[d] * errors[d] / static_cast<double>(count);
  }
  if (p.norm == ChainNorm::rmsnorm) {
    mean = 0;
    RmsnormProblem norm;
    norm.dtype = p.dtype;
    norm.epsilon = p.epsilon;
    rmsnorm_reference(norm, sums, row.gamma, y, tolerance);
  } else {
    LayernormProblem norm;
    norm.dtype = p.dtype;
    norm.epsilon = p.epsilon;
    layernorm_reference(norm, sums, row.gamma, row.beta, y, tolerance);
  }
  for (const double sum : sums) square += (sum - mean) * (sum - mean) / static_cast<double>(count);
  const double scale = 1 / std::sqrt(square + static_cast<double>(p.epsilon));
  const double error = std::sqrt(error_square);
  for (size_t d = 0; d < count; ++d) {
    const double g = row.gamma.empty() ? 1 : std::fabs(row.gamma[d]);
    const double normalised = std::fabs(sums[d] - mean) * scale;
    tolerance[d] += g * scale * (errors[d] + error + normalised * error) * (1 + 2 * scale * error);
  }
}

}  // namespace wide::catalog
