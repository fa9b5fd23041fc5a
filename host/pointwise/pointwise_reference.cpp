// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions as they are defined, in fp64; shares only the problem struct with what it judges.
#include "host/pointwise/pointwise_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wide::catalog {

namespace {

/// A value, and z of the bound, which is negative for functions that only choose or multiply.
struct Judged {
  double value;
  double exponent = -1;
  bool is_chosen = false;  ///< an operand, a bound or 0, as it is
};

Judged chosen(double value) {
  return {.value = value, .is_chosen = true};
}

/// By what its last place is worth, not by a conversion: kernels convert, too.
bool holds(Dtype dtype, double value) {
  if (value == 0) return true;
  const double step = std::ldexp(2 * unit_roundoff(dtype), std::ilogb(value));
  return std::fmod(value, std::max(step, min_subnormal(dtype))) == 0;
}

/// Whether the function is a product of x and a factor that vanishes as x falls.
bool vanishes_left(PointwiseFunction function) {
  using enum PointwiseFunction;
  return function == gelu || function == gelu_tanh || function == silu || function == hardswish;
}

Judged judge(const PointwiseProblem& p, double x, double slope) {
  const auto negative = [&](double factor) {
    return x > 0 ? chosen(x) : Judged{.value = factor * x, .is_chosen = x == 0};
  };
  if (vanishes_left(p.function) && x == -std::numeric_limits<double>::infinity()) return {0};
  switch (p.function) {
    case PointwiseFunction::relu:
      return chosen(std::max(x, 0.0));
    case PointwiseFunction::gelu:
      return {x / 2 * std::erfc(-x / std::numbers::sqrt2), x < 0 ? x * x / 2 : 0};
    case PointwiseFunction::gelu_tanh: {
      const double z = 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return {x / (1 + std::exp(-z)), std::max(-z, 0.0)};
    }
    case PointwiseFunction::silu:
      return {x / (1 + std::exp(-x)), std::max(-x, 0.0)};
    case PointwiseFunction::sigmoid:
      return {1 / (1 + std::exp(-x)), std::max(-x, 0.0)};
    case PointwiseFunction::tanh:
      return {std::tanh(x), 0};
    case PointwiseFunction::elu:
      return x > 0 ? chosen(x) : Judged{static_cast<double>(p.alpha) * std::expm1(x), 0};
    case PointwiseFunction::leaky_relu:
      return negative(static_cast<double>(p.slope));
    case PointwiseFunction::prelu:
      return negative(slope);
    case PointwiseFunction::hardswish:
      if (x <= -3) return chosen(0);
      return {x * std::clamp(x + 3, 0.0, 6.0) / 6};
    case PointwiseFunction::softplus: {
      const double z = static_cast<double>(p.beta) * x;
      return {
          (std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z)))) / static_cast<double>(p.beta),
          std::max(-z, 0.0)};
    }
    case PointwiseFunction::clamp:
      return chosen(std::clamp(x, static_cast<double>(p.low), static_cast<double>(p.high)));
  }
  return {0};
}

}  // namespace

void pointwise_reference(const PointwiseProblem& problem, std::span<const double> x,
                         std::span<const double> slopes, std::span<double> y,
                         std::span<double> tolerance) {
  constexpr double u = unit_roundoff(Dtype::fp32);
  for (size_t d = 0; d < x.size(); ++d) {
    const double slope = slopes.empty() ? 0 : slopes[slopes.size() == 1 ? 0 : d];
    const Judged judged = judge(problem, x[d], slope);
    const double magnitude = std::fabs(judged.value);
    // What fp32 does not hold is no operand: another primitive's intermediate result.
    const bool is_chosen = judged.is_chosen && holds(Dtype::fp32, judged.value);
    const double error = is_chosen ? 0
                         : judged.exponent < 0
                             ? 4 * u * magnitude
                             : (16 + 4 * judged.exponent) * u * magnitude + 0x1p-119;
    const bool is_exact = is_chosen && holds(problem.dtype, judged.value);
    y[d] = judged.value;
    tolerance[d] =
        is_exact ? 0
                 : error + unit_roundoff(problem.dtype) * magnitude + min_subnormal(problem.dtype);
  }
}

}  // namespace wide::catalog
