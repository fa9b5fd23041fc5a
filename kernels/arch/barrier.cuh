// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Barriers for a subset of a block: warps with different roles wait only for each other. A block
// has sixteen; 0 is that of __syncthreads(). All who meet at a barrier pass the same number of
// threads, a multiple of 32.
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar / barrier".
#pragma once

namespace wide::kernels::arch {

/// Waits until `num_threads` have arrived at barrier `id` in [1, 15]; their earlier writes are
/// visible afterwards. Whole warps only.
__device__ inline void named_barrier_sync(int id, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

}  // namespace wide::kernels::arch
