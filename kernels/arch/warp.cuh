// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Decisions of a whole warp or warpgroup: who issues a copy, and how many registers it holds.
// Sources: PTX ISA, "Parallel Synchronization and Communication Instructions: elect.sync",
// "Miscellaneous Instructions: setmaxnreg".
#pragma once

#include <cstdint>

namespace wide::kernels::arch {

/// True in one lane of the warp, always the same one. The whole warp calls it. Unlike a test of
/// the lane index, it tells the compiler that only one thread takes the branch. Compute capability
/// 9.0.
__device__ inline bool elect_one() {
  uint32_t is_elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_elected));
  return is_elected != 0;
}

/// `value`, which is the same in all lanes of the warp, now known to the compiler to be uniform:
/// what depends on it is computed once per warp. The whole warp calls it.
__device__ inline int same_in_warp(int value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

/// Releases registers, for a warpgroup that only issues copies: at most `kRegisters` remain per
/// thread, a multiple of 8 in [24, 256]. All four warps of the warpgroup call it, and the kernel
/// has __launch_bounds__ with both arguments. Compute capability 9.0a.
template <int kRegisters>
__device__ inline void shrink_registers() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Waits for registers that other warpgroups release, up to `kRegisters` per thread.
template <int kRegisters>
__device__ inline void grow_registers() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace wide::kernels::arch
