// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Barriers for a part of a block: warps that work on different things wait only for each other.
// A block has sixteen; 0 is the one of __syncthreads(). Both sides of a barrier name the same
// number of threads, a multiple of 32, those included that only arrive.
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: bar / barrier".
#pragma once

#include <cstdint>

namespace wide::kernels::arch {

/// Waits until `num_threads` have come to barrier `id` in [1, 15]; what they wrote before is
/// visible after. Whole warps only.
__device__ inline void named_barrier_sync(int id, int num_threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

/// Counts as come, and goes on: the producer's side. Publishes like named_barrier_sync(), learns
/// nothing. Whole warps only.
__device__ inline void named_barrier_arrive(int id, int num_threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

}  // namespace wide::kernels::arch
