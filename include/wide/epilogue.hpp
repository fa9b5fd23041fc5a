// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a primitive does to its accumulator before it is rounded and written.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class Activation : uint8_t {
  none,
  relu,       ///< max(v, 0); NaN stays NaN, -0 becomes +0
  gelu,       ///< v/2 * (1 + erf(v / sqrt 2)); 0 at -infinity, its limit
  gelu_tanh,  ///< v/2 * (1 + tanh(sqrt(2/pi) * (v + 0.044715 v^3))); 0 at -infinity
  silu,       ///< v / (1 + exp(-v)); 0 at -infinity
};

constexpr std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::silu:
      return "silu";
  }
  return "?";
}

inline constexpr auto kAllActivations = enumerators<Activation, activation_name>();

constexpr std::optional<Activation> parse_activation(std::string_view name) {
  return parse_enumerator(name, kAllActivations, activation_name);
}

/// fp32 factors of the accumulator.
enum class OutputScale : uint8_t {
  none,
  per_member,  ///< scale [N, 1]
  per_output,  ///< scale [N, out]
};

/// A tensor like y that is added; may be y itself.
enum class Residual : uint8_t {
  none,
  before_activation,
  after_activation,
};

constexpr std::string_view output_scale_name(OutputScale scale) {
  return scale == OutputScale::none         ? "none"
         : scale == OutputScale::per_member ? "per_member"
                                            : "per_output";
}
constexpr std::string_view residual_name(Residual residual) {
  return residual == Residual::none                ? "none"
         : residual == Residual::before_activation ? "before_activation"
                                                   : "after_activation";
}

/// y = activation(alpha * scale * accumulator + bias + residual), or the residual added after the
/// activation; in fp32, then rounded once to y's dtype.
struct Epilogue {
  bool has_bias = false;  ///< bias [N, out]: one vector per member
  Activation activation = Activation::none;
  OutputScale scale = OutputScale::none;
  Residual residual = Residual::none;
  float alpha = 1;  ///< finite
  friend constexpr bool operator==(const Epilogue&, const Epilogue&) = default;

  /// Whether an accumulator is only rounded.
  constexpr bool is_identity() const { return *this == Epilogue{}; }
};

}  // namespace wide
