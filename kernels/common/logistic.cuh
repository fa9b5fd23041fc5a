// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quotients by 1 + exp(-z), in fp32. The exponent is rounded once, by up to 2^-24 |z|, which is the
// relative error of the result, besides a few ulp: avoiding it, as expf() does, would double the
// instructions.
#pragma once

#include "kernels/arch/math.cuh"

namespace wide::kernels {

/// x / (1 + 2^-z): where 2^-z overflows the quotient is 0, its limit.
__device__ inline float divided_by_exp2(float x, float z) {
  return x * arch::reciprocal_approximately(1.0f + arch::exp2_approximately(-z));
}

/// 1 / (1 + exp(-x))
__device__ inline float logistic(float x) {
  return divided_by_exp2(1.0f, kLog2E * x);
}

}  // namespace wide::kernels
