// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The larger of two numbers in one instruction, like fmaxf, but propagating NaN (sm_80 and later).
// Source: PTX ISA, "Floating Point Instructions: max".
#pragma once

namespace wide::kernels::arch {

__device__ inline float max_keeping_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

}  // namespace wide::kernels::arch
