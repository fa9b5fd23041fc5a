// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A hint to the compiler about registers. Emits no instruction.
#pragma once

namespace wide::kernels::arch {

/// `value`, hidden from the compiler as loop-invariant: what is computed from it is recomputed
/// where it is used instead of being kept in registers throughout.
__device__ inline int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace wide::kernels::arch
