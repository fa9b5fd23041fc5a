// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions of pointwise, in fp32. Forms are chosen for their tails: no difference of nearly
// equal numbers, no overflow that is not the limit. And for their length: at memory's rate a
// multiprocessor has some 25 instructions for an element of 16 bits, so quotients are __fdividef's
// (2 ulp; 0 for denominators above 2^126, where exp is about to overflow anyway), and gelu and
// softplus take polynomials of their own where erfcf and log1pf would be the time. Source of
// errors: "CUDA C++ Programming Guide", mathematical and intrinsic functions.
#pragma once

#include "kernels/common/activation.cuh"
#include "kernels/common/logistic.cuh"
#include "wide/pointwise_function.hpp"

namespace wide::kernels {

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

/// log(1 + exp(z)) = max(z, 0) + log(1 + w) with w = exp(-|z|); log(1 + w) = w P(w), P
/// interpolates at Chebyshev's points of [0, 1], within 9.3e-8 of itself.
__device__ inline float softplus(float z) {
  constexpr float kLog[] = {0.0051261024f, -0.029074065f, 0.077516086f, -0.13602248f, 0.19076881f,
                            -0.24835399f,  0.3331812f,    -0.49999446f, 0.99999994f};
  const float w = __expf(-fabsf(z));
  return (z > 0.0f || z != z ? z : 0.0f) + w * polynomial(w, kLog);
}

/// `a` and `b` as PointwiseParams says; prelu's slope is `a`.
template <PointwiseFunction kFunction>
__device__ inline float apply_pointwise(float x, float a, float b) {
  using enum PointwiseFunction;
  if constexpr (kFunction == relu) return activate<Activation::relu>(x);
  if constexpr (kFunction == gelu) return kernels::gelu(x);
  if constexpr (kFunction == gelu_tanh) return kernels::gelu_tanh(x);
  if constexpr (kFunction == silu) return kernels::silu(x);
  if constexpr (kFunction == sigmoid) return logistic(x);
  if constexpr (kFunction == tanh) return tanhf(x);
  if constexpr (kFunction == elu) return x > 0.0f ? x : a * expm1f(x);
  if constexpr (kFunction == leaky_relu || kFunction == prelu) return x > 0.0f ? x : a * x;
  // Minima and maxima by comparison: fminf and fmaxf turn NaN into the other operand.
  if constexpr (kFunction == clamp) return x < a ? a : x > b ? b : x;
  if constexpr (kFunction == hardswish) {
    return x <= -3.0f ? 0.0f : x >= 3.0f ? x : x * (x + 3.0f) * (1.0f / 6.0f);
  }
  if constexpr (kFunction == softplus) return kernels::softplus(a * x) * b;
}

}  // namespace wide::kernels
