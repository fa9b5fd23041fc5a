// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Between a kernel and the one before it in the stream: launch_kernel() (kernels/common/launch.hpp)
// lets its blocks start while the other's last ones still run. Until its threads have waited they
// may do what touches no global memory: parameters, arithmetic, shared memory, prefetches.
//
// What a thread reads behind the wait it reads by ordinary loads. ld.global.nc, which is what
// __ldg() and pointers that are const and __restrict__ become, is for what nobody writes while the
// kernel runs, and the kernel before may have written it in that time: no fence orders such a load,
// and ptxas may issue it before the wait (scripts/check_kernels refuses them).
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol", and
// "Memory Consistency Model: Scope and applicability of the model" for ld.global.nc.
// Compute capability 9.0; nothing on others, where no launch overlaps.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/arch/target.cuh"

namespace wide::kernels::arch {

/// Until the kernels before have ended and what they wrote is visible. Every thread that touches
/// global memory waits for itself, reads and writes alike; returns at once in a launch like any
/// other.
__device__ inline void wait_for_grid() {
  if constexpr (kHasSm90) asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the kernel behind start its blocks, once every block of this one has said so or has ended,
/// so that it takes no block's place. A matter of time only: whoever needs this one's results waits
/// for its end. Never before wait_for_grid(): a kernel's end stands for that of all before it, and
/// three at a time would hold one another's places. Nothing where WIDE_PROGRAMMATIC_LAUNCH is off,
/// so that an engine's kernel that asks to start early does not either.
__device__ inline void launch_dependents() {
#if WIDE_PROGRAMMATIC_LAUNCH
  if constexpr (kHasSm90) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Both, which is how a kernel begins that has no reason to let the next one's blocks in later. For
/// all threads, before the first access to global memory and before any return: the kernel behind
/// waits for this one's end alone, and a grid of which no thread has waited may end before the one
/// before it.
__device__ inline void follow_grid() {
  wait_for_grid();
  launch_dependents();
}

}  // namespace wide::kernels::arch
