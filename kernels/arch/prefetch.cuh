// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Prefetches into the L2 cache, for the time before wait_for_grid() (grid.cuh): blocks that are
// there while the preceding kernel ends have nothing else to do, and memory is often idle. As all
// accesses of a device go through L2, a prefetch cannot miss what the preceding kernel writes;
// addresses come from parameters alone.
// Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk.prefetch".
// Compute capability 9.0; no-ops on others, and where no launches overlap.
#pragma once

#include <cstdint>

#include "kernels/arch/target.cuh"

namespace wide::kernels::arch {

/// Contiguous global memory, by one thread. The address is aligned to 16 bytes; of `bytes`, whole
/// 16 are prefetched.
__device__ inline void prefetch_bulk(const void* global, uint32_t bytes) {
#if WIDE_PROGRAMMATIC_LAUNCH
  if constexpr (kHasSm90) {
    if (bytes < 16) return;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes / 16 * 16)
                 : "memory");
  }
#endif
}

/// Whether the block is among the first `per_multiprocessor` of each. Others start when blocks of
/// this grid have ended, with nobody left to wait for: what they prefetched, they would load at
/// once.
__device__ inline bool is_of_first_blocks(uint32_t per_multiprocessor) {
  uint32_t multiprocessors = 1;
  if constexpr (kHasSm90) asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  return blockIdx.x / per_multiprocessor < multiprocessors;
}

}  // namespace wide::kernels::arch
