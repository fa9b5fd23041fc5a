// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a primitive does to its accumulator before it is rounded and written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wide {

enum class Activation : uint8_t {
  none,
  relu,  ///< max(v, 0); NaN stays NaN, -0 becomes +0
  gelu,  ///< v/2 * (1 + erf(v / sqrt 2))
  silu,  ///< v / (1 + exp(-v))
};

inline constexpr std::array<Activation, 4> kAllActivations{Activation::none, Activation::relu,
                                                           Activation::gelu, Activation::silu};

constexpr std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::silu:
      return "silu";
  }
  return "?";
}

constexpr std::optional<Activation> parse_activation(std::string_view name) {
  for (Activation activation : kAllActivations) {
    if (activation_name(activation) == name) return activation;
  }
  return std::nullopt;
}

/// y = activation(accumulator + bias), in fp32, then rounded once to y's dtype.
struct Epilogue {
  bool has_bias = false;  ///< bias [N, out]: one vector per member
  Activation activation = Activation::none;
  friend constexpr bool operator==(const Epilogue&, const Epilogue&) = default;
};

}  // namespace wide
