// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions that the hardware computes in one instruction, where CUDA's own spend more on results
// below the normal numbers. Source: PTX ISA, "Floating Point Instructions: ex2".
#pragma once

namespace wide::kernels::arch {

/// 2^x within 2 ulp; 0 where the result is no normal number, so for -infinity; NaN for NaN.
__device__ inline float exp2_approximately(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace wide::kernels::arch
