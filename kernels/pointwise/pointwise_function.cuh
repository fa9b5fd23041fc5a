// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The functions of pointwise, in fp32, in forms like activation.cuh's: softplus has its own
// polynomial where log1pf would dominate.
#pragma once

#include "kernels/common/activation.cuh"
#include "kernels/common/logistic.cuh"
#include "wide/pointwise_function.hpp"

namespace wide::kernels {

/// log(1 + exp(z)) = max(z, 0) + log(1 + w) with w = exp(-|z|); log(1 + w) = w P(w), P interpolates
/// at Chebyshev nodes of [0, 1], with a relative error of 9.3e-8.
__device__ inline float softplus(float z) {
  constexpr float kLog[] = {0.0051261024f, -0.029074065f, 0.077516086f, -0.13602248f, 0.19076881f,
                            -0.24835399f,  0.3331812f,    -0.49999446f, 0.99999994f};
  const float w = arch::exp2_approximately(-kLog2E * fabsf(z));
  return arch::max_keeping_nan(z, 0.0f) + w * polynomial(w, kLog);
}

/// `a` and `b` are PointwiseParams'; prelu's slope is `a`.
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
  if constexpr (kFunction == softplus) {
    const float z = a * x;
    return z > kSoftplusOfItself ? x : kernels::softplus(z) * b;
  }
}

}  // namespace wide::kernels
