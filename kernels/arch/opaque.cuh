// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A word with the compiler about registers. No instruction comes of it.
#pragma once

namespace wide::kernels::arch {

/// `value`, of which the compiler no longer knows that it stays the same in a loop: what is
/// computed from it is computed where it is used, instead of being kept in registers all the while.
__device__ inline int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace wide::kernels::arch
