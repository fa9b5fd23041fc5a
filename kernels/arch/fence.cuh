// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ordering that CUDA C++ does not express: between the generic proxy (loads and stores of threads)
// and the async proxy (bulk copies and wgmma).
// Sources: PTX ISA, "Memory Consistency Model: Proxies", "Parallel Synchronization and
// Communication Instructions: membar / fence".
#pragma once

namespace wide::kernels::arch {

/// Makes this thread's mbarrier_init() visible to the async proxy; other threads of the block still
/// need a barrier after it. Compute capability 9.0.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Between generic writes to shared memory and their use by the async proxy (bulk store, wgmma
/// operand): each writing thread fences, then a barrier, then one thread issues. Also between
/// generic reads of a buffer and the bulk load that overwrites it, where nothing else orders them.
/// Compute capability 9.0.
__device__ inline void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace wide::kernels::arch
