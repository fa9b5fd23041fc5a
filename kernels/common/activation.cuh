// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations of epilogues, in fp32. The full-precision functions of CUDA's math library, not the
// hardware's approximations: an epilogue computes few of them per byte that it writes. gelu_tanh
// and silu are pointwise's, too, which are short. Sources: "CUDA C++ Programming Guide",
// mathematical functions (erff 2 ulp, expf 1 ulp); Hendrycks and Gimpel, "Gaussian Error Linear
// Units"; Elfwing et al., "Sigmoid-Weighted Linear Units".
#pragma once

#include "kernels/common/logistic.cuh"
#include "wide/epilogue.hpp"

namespace wide::kernels {

/// The factor of value in functions whose other factor vanishes to its left, in fp32 long before
/// -128: what they are at -infinity is their limit then, 0, not NaN. The other factor keeps NaN.
__device__ inline float left_bounded(float value) {
  return fmaxf(value, -128.0f);
}

/// x/2 * (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3): 1 + tanh(u) is 2 sigmoid(2 u), which
/// has no cancellation far below zero.
__device__ inline float gelu_tanh(float x) {
  constexpr float kTwiceRoot = 1.5957691216057308f;  // 2 sqrt(2 / pi)
  return divided_by_exp(left_bounded(x), kTwiceRoot * (x + 0.044715f * x * x * x));
}

/// x / (1 + exp(-x)), 0 at -infinity
__device__ inline float silu(float x) {
  return divided_by_exp(left_bounded(x), x);
}

template <Activation kActivation>
__device__ inline float activate(float value) {
  if constexpr (kActivation == Activation::relu) {
    // Not fmaxf(value, 0), which turns NaN into 0; -0 compares equal to 0 and becomes +0.
    return value > 0.0f || value != value ? value : 0.0f;
  } else if constexpr (kActivation == Activation::gelu) {
    constexpr float kInverseSqrt2 = 0.70710678118654752f;
    // erfc, not 1 + erf: the sum would cancel for values far below zero.
    return 0.5f * left_bounded(value) * erfcf(-value * kInverseSqrt2);
  } else if constexpr (kActivation == Activation::gelu_tanh) {
    return gelu_tanh(value);
  } else if constexpr (kActivation == Activation::silu) {
    return silu(value);
  } else {
    return value;
  }
}

/// Calls f.template operator()<kActivation>() for the runtime value.
template <class F>
__device__ inline void with_activation(Activation activation, F f) {
  switch (activation) {
    case Activation::none:
      return f.template operator()<Activation::none>();
    case Activation::relu:
      return f.template operator()<Activation::relu>();
    case Activation::gelu:
      return f.template operator()<Activation::gelu>();
    case Activation::gelu_tanh:
      return f.template operator()<Activation::gelu_tanh>();
    case Activation::silu:
      return f.template operator()<Activation::silu>();
  }
}

}  // namespace wide::kernels
