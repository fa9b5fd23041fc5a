// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations of the CPU's epilogues, in fp32.
#pragma once

#include <algorithm>
#include <cmath>

#include "wide/epilogue.hpp"

namespace wide {

inline float activate_cpu(Activation activation, float value) {
  constexpr float kInverseSqrt2 = 0.70710678118654752f;
  // The other factor has long been 0 there: so is the limit at -infinity.
  constexpr float kLeftEnd = -128;
  switch (activation) {
    case Activation::none:
      return value;
    case Activation::relu:
      return value > 0.0f || std::isnan(value) ? value : 0.0f;
    case Activation::gelu:
      // erfc, not 1 + erf: the sum would cancel for values far below zero.
      return 0.5f * std::max(value, kLeftEnd) * std::erfc(-value * kInverseSqrt2);
    case Activation::silu:
      return std::max(value, kLeftEnd) / (1.0f + std::exp(-value));
  }
  return value;
}

}  // namespace wide
