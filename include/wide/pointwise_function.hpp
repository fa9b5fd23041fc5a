// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

/// Functions of x, with the problem's parameters. All keep NaN; at the infinities they have their
/// limits, but for leaky_relu and prelu with a slope of 0, which are 0 * -infinity, NaN, at
/// -infinity.
enum class PointwiseFunction : uint8_t {
  relu,        ///< max(x, 0); -0 becomes +0
  gelu,        ///< x/2 * (1 + erf(x / sqrt 2))
  gelu_tanh,   ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  silu,        ///< x / (1 + exp(-x))
  sigmoid,     ///< 1 / (1 + exp(-x))
  tanh,        ///< tanh(x)
  elu,         ///< x where x > 0, else alpha * (exp(x) - 1)
  leaky_relu,  ///< x where x > 0, else slope * x
  prelu,       ///< the same with a slope per member, or per feature of it
  hardswish,   ///< x * min(max(x + 3, 0), 6) / 6
  softplus,    ///< log(1 + exp(beta * x)) / beta; x where beta * x > kSoftplusOfItself
  clamp,       ///< min(max(x, low), high)
};

/// Beyond it exp(-beta * x) is less than a 900th of a unit of beta * x in fp32; and where beta * x
/// overflows, x does not.
inline constexpr float kSoftplusOfItself = 20;

constexpr std::string_view pointwise_function_name(PointwiseFunction function) {
  switch (function) {
    case PointwiseFunction::relu:
      return "relu";
    case PointwiseFunction::gelu:
      return "gelu";
    case PointwiseFunction::gelu_tanh:
      return "gelu_tanh";
    case PointwiseFunction::silu:
      return "silu";
    case PointwiseFunction::sigmoid:
      return "sigmoid";
    case PointwiseFunction::tanh:
      return "tanh";
    case PointwiseFunction::elu:
      return "elu";
    case PointwiseFunction::leaky_relu:
      return "leaky_relu";
    case PointwiseFunction::prelu:
      return "prelu";
    case PointwiseFunction::hardswish:
      return "hardswish";
    case PointwiseFunction::softplus:
      return "softplus";
    case PointwiseFunction::clamp:
      return "clamp";
  }
  return "?";
}

inline constexpr auto kAllPointwiseFunctions =
    enumerators<PointwiseFunction, pointwise_function_name>();

constexpr std::optional<PointwiseFunction> parse_pointwise_function(std::string_view name) {
  return parse_enumerator(name, kAllPointwiseFunctions, pointwise_function_name);
}

}  // namespace wide
