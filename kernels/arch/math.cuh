// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions with a hardware instruction, where CUDA's own spend further ones on subnormal results.
// Source: PTX ISA, "Floating Point Instructions: ex2, rcp".
#pragma once

namespace wide::kernels {

inline constexpr float kLog2E = 1.4426950408889634f;

namespace arch {

/// 2^x within 2 ulp; 0 where the result would be subnormal, so for -infinity; NaN for NaN.
__device__ inline float exp2_approximately(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// The same with subnormal results, in four instructions.
__device__ inline float exp2_gradually(float x) {
  float power;
  asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// 1 / x within 1 ulp; 0 where the result would be subnormal: for |x| above 2^126.
__device__ inline float reciprocal_approximately(float x) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}

}  // namespace arch

}  // namespace wide::kernels
