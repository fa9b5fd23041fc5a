// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions of pointwise, in fp32; relu and gelu are the epilogues'. Forms are chosen for their
// tails: no difference of nearly equal numbers, no overflow that is not the limit. A memory's worth
// of elements leaves some fifty instructions for each of 16 bits, so that quotients are
// __fdividef's: 2 ulp, and 0 for denominators above 2^126, where exp is about to overflow anyway.
// Source of errors: "CUDA C++ Programming Guide", mathematical functions.
#pragma once

#include "kernels/common/activation.cuh"
#include "wide/pointwise.hpp"

namespace wide::kernels {

/// x / (1 + exp(-z)): where exp overflows the quotient is 0, its limit.
__device__ inline float divided_by_exp(float x, float z) {
  return __fdividef(x, 1.0f + expf(-z));
}

/// `a` and `b` as PointwiseParams says; prelu's slope is `a`.
template <PointwiseFunction kFunction>
__device__ inline float apply_pointwise(float x, float a, float b) {
  using enum PointwiseFunction;
  if constexpr (kFunction == relu) return activate<Activation::relu>(x);
  if constexpr (kFunction == gelu) return activate<Activation::gelu>(x);
  if constexpr (kFunction == silu) return divided_by_exp(x, x);
  if constexpr (kFunction == sigmoid) return divided_by_exp(1.0f, x);
  if constexpr (kFunction == tanh) return tanhf(x);
  if constexpr (kFunction == elu) return x > 0.0f ? x : a * expm1f(x);
  if constexpr (kFunction == leaky_relu || kFunction == prelu) return x > 0.0f ? x : a * x;
  // Minima and maxima by comparison: fminf and fmaxf turn NaN into the other operand.
  if constexpr (kFunction == clamp) return x < a ? a : x > b ? b : x;
  if constexpr (kFunction == hardswish) {
    return x <= -3.0f ? 0.0f : x >= 3.0f ? x : x * (x + 3.0f) * (1.0f / 6.0f);
  }
  if constexpr (kFunction == softplus) {
    const float z = a * x;
    return ((z > 0.0f || z != z ? z : 0.0f) + log1pf(expf(-fabsf(z)))) * b;
  }
  if constexpr (kFunction == gelu_tanh) {
    // 1 + tanh(u) is 2 sigmoid(2 u), which has no cancellation far below zero.
    constexpr float kTwiceRoot = 1.5957691216057308f;  // 2 sqrt(2 / pi)
    return divided_by_exp(x, kTwiceRoot * (x + 0.044715f * x * x * x));
  }
}

}  // namespace wide::kernels
