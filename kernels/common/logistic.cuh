// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quotients by 1 + exp(-z), in fp32. By __fdividef: 2 ulp, and 0 for denominators above 2^126,
// where exp is about to overflow anyway. Source of errors: "CUDA C++ Programming Guide",
// mathematical and intrinsic functions.
#pragma once

namespace wide::kernels {

/// x / (1 + exp(-z)): where exp overflows the quotient is 0, its limit.
__device__ inline float divided_by_exp(float x, float z) {
  return __fdividef(x, 1.0f + expf(-z));
}

/// 1 / (1 + exp(-x))
__device__ inline float logistic(float x) {
  return divided_by_exp(1.0f, x);
}

}  // namespace wide::kernels
