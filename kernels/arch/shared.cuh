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

}  // namespace wide::kernels::arch
