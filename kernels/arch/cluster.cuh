// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a cluster (kernels/common/launch.hpp): they run at the same time, on
// multiprocessors that reach one another's shared memory. A variable lies at the same place in each
// block's, at an address of its own. No block may reach another's shared memory before that runs,
// so that they begin by cluster_sync(), and none may end while others may still reach its own.
// Sources: PTX ISA, "Special Registers: %cluster_ctarank", "Data Movement and Conversion
// Instructions: mapa", "Parallel Synchronization and Communication Instructions: barrier.cluster".
// Compute capability 9.0.
#pragma once

#include <cstdint>

#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// This block's number in its cluster: along x, blockIdx.x modulo the cluster's blocks.
__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Where the variable that `shared` points to lies in block `rank` of the cluster, this one's
/// included: for instructions that take addresses of the cluster.
__device__ inline uint32_t cluster_address(const void* shared, uint32_t rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(shared)), "r"(rank));
  return address;
}

/// Waits until all threads of the cluster have arrived. Visible afterwards are mbarriers, if their
/// fence_mbarrier_init() precedes it; no other writes are. Lanes of a warp need not arrive
/// together.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

}  // namespace wide::kernels::arch
