// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Order between consecutive kernels of a stream: launch_kernel() (kernels/common/launch.hpp) starts
// blocks while the last ones of the kernel before still run. Before the wait, threads may only do
// what touches no global memory: arithmetic, shared memory, prefetches, parameters.
//
// After the wait, global memory is read by ordinary loads. ld.global.nc, which __ldg() and const
// __restrict__ pointers become, is for data that is not written while the kernel runs, but the
// predecessor may have written it in that time: no fence orders such a load, and ptxas may issue it
// before the wait (scripts/check_kernels refuses them).
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol", and
// "Memory Consistency Model: Scope and applicability of the model" for ld.global.nc.
// Compute capability 9.0; no-ops on others, where no launches overlap.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/arch/target.cuh"

namespace wide::kernels::arch {

/// Waits until all earlier kernels have ended and their writes are visible. Every thread that
/// accesses global memory, for reading or writing, waits for itself; returns at once in an ordinary
/// launch.
__device__ inline void wait_for_grid() {
  if constexpr (kHasSm90) asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the next kernel start its blocks once every block of this one has called this or has ended,
/// so that it displaces none of them. Affects timing only: a kernel that needs the results waits
/// for this one's end. Never before wait_for_grid(): a kernel's end implies that of all before it,
/// and three kernels at a time would hold one another's slots. No-op where WIDE_PROGRAMMATIC_LAUNCH
/// is off, so that an engine's kernel that asks to start early does not either.
__device__ inline void launch_dependents() {
#if WIDE_PROGRAMMATIC_LAUNCH
  if constexpr (kHasSm90) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Both: how a kernel begins that has no reason to admit the next one's blocks later. For all
/// threads, before the first access to global memory and before any return: the next kernel waits
/// for the end of this one only, and a grid in which no thread has waited may end before its
/// predecessor.
__device__ inline void follow_grid() {
  wait_for_grid();
  launch_dependents();
}

}  // namespace wide::kernels::arch
