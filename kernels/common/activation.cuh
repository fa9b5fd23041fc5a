// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations in fp32, for epilogues and pointwise. The forms are chosen for their tails, where
// nothing cancels, and for their length: a tile's epilogue has no products to overlap with, and a
// pointwise kernel at memory bandwidth has some 25 instructions per 16-bit element. Sources:
// Hendrycks and Gimpel, "Gaussian Error Linear Units"; Elfwing et al., "Sigmoid-Weighted Linear
// Units".
#pragma once

#include "kernels/arch/maximum.cuh"
#include "kernels/common/logistic.cuh"
#include "wide/epilogue.hpp"

namespace wide::kernels {

/// The factor `value` of functions whose other factor vanishes towards -infinity, in fp32 long
/// before -128: so the function is 0 at -infinity, its limit, not NaN. The other factor keeps NaN.
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
/// Phi(-a) = exp(-a^2 / 2) t P(t) with t = 1 / (1 + 0.35 a); P interpolates at Chebyshev nodes of t
/// for a in [0, 16], with a relative error of 7.2e-8. Beyond, Phi is 0 in fp32.
__device__ inline float gelu(float x) {
  constexpr float kTail[] = {-0.029810863f, 0.14711124f, -0.26196226f, 0.16598679f, -0.027537409f,
                             0.10725404f,   0.11942727f, 0.13991234f,  0.13961884f};
  const float a = fminf(fabsf(x), 16.0f);
  const float t = arch::reciprocal_approximately(fmaf(0.35f, a, 1.0f));
  const float power = arch::exp2_approximately(-0.5f * kLog2E * a * a);
  return arch::max_keeping_nan(x, 0.0f) - a * (t * polynomial(t, kTail) * power);
}

/// x/2 * (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3): 1 + tanh(u) is 2 sigmoid(2 u), which
/// has no cancellation far below zero.
__device__ inline float gelu_tanh(float x) {
  constexpr float kFactor = 2.3022081983f;  // 2 sqrt(2 / pi) log2(e)
  return divided_by_exp2(left_bounded(x), x * fmaf(0.044715f * kFactor, x * x, kFactor));
}

/// x / (1 + exp(-x)), 0 at -infinity
__device__ inline float silu(float x) {
  return divided_by_exp2(left_bounded(x), kLog2E * x);
}

template <Activation kActivation>
__device__ inline float activate(float value) {
  if constexpr (kActivation == Activation::relu) {
    return arch::max_keeping_nan(value, 0.0f);  // -0 becomes +0
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
