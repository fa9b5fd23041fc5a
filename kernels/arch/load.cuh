// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads that stay where they are written. An ordinary load under a condition is a branch to the
// compiler, and 16-bit elements of what it loads are taken apart in that branch, so that each load
// waits for the one before; a predicate leaves them side by side, all under way at once.
// Source: PTX ISA, "Data Movement and Conversion Instructions: ld".
#pragma once

#include <cstdint>

namespace wide::kernels::arch {

/// Sixteen bytes of global memory, where `exists`; else `words` stay as they are.
__device__ inline void load_16_if(uint4& words, const void* address, bool exists) {
  asm volatile(
      "{\n"
      "  .reg .pred exists;\n"
      "  setp.ne.b32 exists, %5, 0;\n"
      "  @exists ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<int>(exists)));
}

/// Two bytes likewise.
__device__ inline void load_2_if(uint16_t& word, const void* address, bool exists) {
  asm volatile(
      "{\n"
      "  .reg .pred exists;\n"
      "  setp.ne.b32 exists, %2, 0;\n"
      "  @exists ld.global.u16 %0, [%1];\n"
      "}"
      : "+h"(word)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<int>(exists)));
}

}  // namespace wide::kernels::arch
