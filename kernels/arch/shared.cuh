// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared memory as the instructions of this folder address it: by 32-bit addresses in its own
// window, where C++ has generic pointers.
#pragma once

#include <cstdint>

namespace wide::kernels::arch {

/// The address of a pointer into this block's shared memory.
__device__ inline uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// Two neighbours, 8-byte aligned, in one store; the compiler splits some of those of a float2.
/// Source: PTX ISA, "Data Movement and Conversion Instructions: st".
__device__ inline void store_pair(float* shared, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared_address(shared)), "f"(first),
               "f"(second)
               : "memory");
}

}  // namespace wide::kernels::arch
