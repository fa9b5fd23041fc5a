// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Instructions that no kernel uses so far, but the simulated GPU knows: kernels of tests prove it.
// Sources: PTX ISA, "Parallel Synchronization and Communication Instructions: bar / barrier", "ld",
// "st", "cp.async.bulk".
#pragma once

#include <cstdint>

#include "kernels/arch/mbarrier.cuh"
#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// Arrives without waiting: the producer's side. Publishes like named_barrier_sync() but acquires
/// nothing. Whole warps only, which count among the barrier's threads.
__device__ inline void named_barrier_arrive(int id, int num_threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(num_threads) : "memory");
}

/// Whatever the storing thread did before the matching store_release() is visible after this load.
/// 4-byte aligned; scope: the device.
__device__ inline uint32_t load_acquire(const uint32_t* global) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(global) : "memory");
  return value;
}

/// Publishes this thread's writes and what it acquired through barriers: after a __syncthreads()
/// one thread publishes for its block. 4-byte aligned; scope: the device.
__device__ inline void store_release(uint32_t* global, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(global), "r"(value) : "memory");
}

/// Contiguous bytes. Both addresses aligned to 16 bytes, `bytes` a multiple of 16.
__device__ inline void load_bulk(void* shared, const void* global, uint32_t bytes,
                                 Mbarrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// The reverse, as store_tile() stores.
__device__ inline void store_bulk(void* global, const void* shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}

/// Waits until the results of all but `kPending` of this thread's groups of stores are in global
/// memory, visible to this thread.
template <int kPending>
__device__ inline void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace wide::kernels::arch
