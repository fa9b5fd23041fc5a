// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads that stay where they are written. The compiler may sink an ordinary load to where its
// elements are used one by one. A conditional one becomes a branch in which 16-bit elements are
// unpacked, so that each load waits for the one before; predicated loads stay adjacent, all in
// flight at once.
// Source: PTX ISA, "Data Movement and Conversion Instructions: ld".
#pragma once

#include <cstdint>

namespace wide::kernels::arch {

/// A value of 1, 2, 4, 8 or 16 bytes of global memory in one load: like __ldg(), but never before
/// the wait for the preceding kernel (kernels/arch/grid.cuh).
template <class T>
__device__ inline T load(const T* address) {
  const auto from = __cvta_generic_to_global(address);
  alignas(16) unsigned char value[sizeof(T)];
  if constexpr (sizeof(T) == 1) {
    uint16_t byte;
    asm volatile("ld.global.u8 %0, [%1];" : "=h"(byte) : "l"(from));
    value[0] = static_cast<unsigned char>(byte);
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(*reinterpret_cast<uint16_t*>(value)) : "l"(from));
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(*reinterpret_cast<uint32_t*>(value)) : "l"(from));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(*reinterpret_cast<uint64_t*>(value)) : "l"(from));
  } else {
    static_assert(sizeof(T) == 16);
    auto& words = *reinterpret_cast<uint4*>(value);
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(from));
  }
  return *reinterpret_cast<const T*>(value);
}

/// Sixteen bytes of global memory if `exists`; otherwise `words` are unchanged.
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

/// The same for two bytes.
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
