// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Barriers in shared memory that count arrivals of threads and bytes of asynchronous copies. A
// phase completes when both are in, and the next one begins by itself. A waiter names the phase by
// its parity: 0 for the first, 1 for the second, 0 again. Waiting for parity 1 on a fresh mbarrier
// succeeds at once, which is how a producer finds its stages empty at the start.
//
// A waiter must not lag by a whole phase: the parity would be the old one again. Arrivals release
// what their thread wrote (and acquired through barriers), a successful wait acquires it and sees
// the bytes of the phase's copies.
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". Compute
// capability 9.0.
#pragma once

#include <cstdint>

#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// In shared memory, 8-byte aligned. Opaque: only the functions below touch it.
using Mbarrier = uint64_t;

/// By one thread, before any use: then fence_mbarrier_init() (for copies) and a barrier (for the
/// other threads). Each phase waits for `num_arrivals` in [1, 2^20).
__device__ inline void mbarrier_init(Mbarrier* barrier, uint32_t num_arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(num_arrivals)
               : "memory");
}

__device__ inline void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// An arrival at an mbarrier of any block of the cluster, by its cluster_address(). It publishes
/// nothing to other blocks: enough to give a buffer back whose readers have their values. At the
/// cluster's scope it would be a fence of the whole device (ptxas 13.0).
__device__ inline void mbarrier_arrive_cluster(uint32_t address) {
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(address)
               : "memory");
}

/// An arrival for a phase that also waits for `bytes` bytes of copies, fewer than 2^20 in total.
/// Called before the copies are issued, or at least before the phase's last arrival.
__device__ inline void mbarrier_arrive_expect_bytes(Mbarrier* barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// Whether the phase of that parity is complete; may suspend for a while before it returns false.
__device__ inline bool mbarrier_try_wait(Mbarrier* barrier, uint32_t parity) {
  uint32_t is_complete;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_complete)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return is_complete != 0;
}

__device__ inline void mbarrier_wait(Mbarrier* barrier, uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

}  // namespace wide::kernels::arch
