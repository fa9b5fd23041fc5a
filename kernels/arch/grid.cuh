// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Between a kernel and the one before it in the stream, where it was launched by
// launch_overlapping(): its blocks may start while the other's last ones still run, and fetch what
// no kernel writes.
// Source: PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol".
// Compute capability 9.0.
#pragma once

#include <cuda_runtime_api.h>

namespace wide::kernels::arch {

/// Until the kernels before have ended and what they wrote is visible. Every thread that touches
/// global memory waits for itself, reads and writes alike; returns at once in a launch like any
/// other.
__device__ inline void wait_for_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the kernel behind start its blocks, once every block of this one has said so or has ended.
/// A matter of time only: whoever needs this one's results waits for its end.
__device__ inline void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace wide::kernels::arch
