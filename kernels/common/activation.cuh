// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations in fp32, of epilogues and of pointwise. Forms are chosen for their tails, in which
// nothing cancels, and for their length: a tile's epilogue has no multiplication to hide behind,
// and at memory's rate pointwise has some 25 instructions for an element of 16 bits. Sources:
// Hendrycks and Gimpel, "Gaussian Error Linear Units"; Elfwing et al., "Sigmoid-Weighted Linear
// Units"; errors: "CUDA C++ Programming Guide", mathematical and intrinsic functions.
#pragma once

#include "kernels/common/logistic.cuh"
#include "wide/epilogue.hpp"

namespace wide::kernels {

/// The factor of value in functions whose other factor vanishes to its left, in fp32 long before
/// -128: what they are at -infinity is their limit then, 0, not NaN. The other factor keeps NaN.
__device__ inline float left_bounded(float value) {
  return fmaxf(value, -128.0f);
}

/// c[0] x^8 + c[1] x^7 + .. + c[8]
__device__ inline float polynomial(float x, const float (&c)[9]) {
  float sum = c[0];
#pragma unroll
  for (int i = 1; i < 9; ++i) sum = fmaf(sum, x, c[i]);
  return sum;
}

/// x Phi(x), Phi the normal distribution: max(x, 0) - |x| Phi(-|x|), in which nothing cancels.
/// Phi(-a) = exp(-a^2 / 2) t P(t) with t = 1 / (1 + 0.35 a); P interpolates at Chebyshev's points
/// of the t of a in [0, 16], within 7.2e-8 of itself. Beyond, Phi is 0 in fp32.
__device__ inline float gelu(float x) {
  constexpr float kTail[] = {-0.029810863f, 0.14711124f, -0.26196226f, 0.16598679f, -0.027537409f,
                             0.10725404f,   0.11942727f, 0.13991234f,  0.13961884f};
  const float a = fminf(fabsf(x), 16.0f);
  const float t = __fdividef(1.0f, fmaf(0.35f, a, 1.0f));
  const float tail = t * polynomial(t, kTail) * __expf(-0.5f * a * a);
  return (x > 0.0f || x != x ? x : 0.0f) - a * tail;
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
    return gelu(value);
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
