// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies from global to shared memory that bypass the registers (sm_80 and later). The number of
// bytes read is a runtime value, the rest is zero-filled: one instruction serves full, partial and
// absent pieces, where the toolkit's own wrapper branches over seventeen of them.
// Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async, createpolicy".
#pragma once

#include <cstdint>

#include "kernels/arch/shared.cuh"
#include "kernels/arch/target.cuh"

namespace wide::kernels::arch {

/// Both addresses are aligned to 16 bytes; reads the first `source_bytes` in [0, 16], writes 16.
__device__ inline void cp_async_16(void* shared, const void* global, int source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(source_bytes)
               : "memory");
}

/// Both addresses are aligned to four bytes; reads the first `source_bytes` in [0, 4], writes four.
__device__ inline void cp_async_4(void* shared, const void* global, int source_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(source_bytes)
               : "memory");
}

/// An L2 eviction priority: addresses that are read only once are evicted first.
struct CacheHint {
  uint64_t policy;

  __device__ explicit CacheHint(bool is_read_once) {
    if (is_read_once) {
      asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    } else {
      asm("createpolicy.fractional.L2::evict_normal.b64 %0;" : "=l"(policy));
    }
  }
};

/// The same with an L2 cache hint, before compute capability 9.0. For later ones ptxas 12.4 to 13.3
/// takes the hint and a uniform part of the address from registers that nothing has written
/// (LDGSTS [R+UR0], desc[UR1]), and the instruction is illegal or goes astray. 12.4 and 13.0 were
/// seen to; others: IST-DASLab/marlin issue 44 (on hardware), Triton pull requests 11660 and 11848.
__device__ inline void cp_async_16(void* shared, const void* global, int source_bytes,
                                   const CacheHint& hint) {
  if constexpr (kHasSm90) {
    cp_async_16(shared, global, source_bytes);
  } else {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(source_bytes), "l"(hint.policy)
                 : "memory");
  }
}

/// Commits the copies that this thread has issued as a group.
__device__ inline void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `kPending` of this thread's groups are in flight. Other threads' copies are
/// visible after their wait and a barrier.
template <int kPending>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace wide::kernels::arch
