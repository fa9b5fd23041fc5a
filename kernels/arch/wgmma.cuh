// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a warpgroup: D (64 x n, fp32, in registers) += A (64 x k) B (k x n), both of
// bf16, fp16, tf32 or fp8, k being 32 bytes of elements; B in shared memory, A there or in
// registers. tf32 ignores the last 13 bits of fp32 operands; fp8 sums keep fewer bits than fp32,
// so long ones are periodically added up elsewhere. The products run asynchronously:
// wgmma_fence() before the first and whenever D's or A's registers were touched, any number of
// wgmma(), then wgmma_commit(), and wgmma_wait() before D is read or the operands' memory is
// written.
//
// Until the wait, the products own D's and A's registers: they must not even be copied. The async
// proxy reads the operands: after a bulk load, waiting on its mbarrier is enough, after ordinary
// stores fence_proxy_async() and a barrier come first.
//
// D's fragment: warp w of the four holds rows 16 w to 16 w + 15; element 4 j + 2 h + i of lane l is
// row 8 h + l / 4, column 8 j + 2 (l % 4) + i. A in registers: mma_m16n8k16()'s fragment of the
// warp's 16 rows (matrix.cuh).
// Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation: Register
// Fragments and Shared Memory Matrix Layouts, Matrix Descriptor Format, wgmma.mma_async". Compute
// capability 9.0a. All four warps of a warpgroup call these together, with the same descriptors;
// its first warp's index is a multiple of four.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "kernels/arch/matrix.cuh"
#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// The span in bytes in which the 16-byte pieces of an operand's rows are permuted: that of the
/// tensor map that loaded it. Values are the descriptor's.
enum class OperandSwizzle : uint32_t { none = 0, bytes_128 = 1, bytes_64 = 2, bytes_32 = 3 };

/// Which index is contiguous in shared memory: k (x [m, k] and weight [n, k]), or the other.
enum class Major : int { k = 0, mn = 1 };

/// Layout of an operand. With a swizzle of s bytes, an atom is 8 rows of s bytes, aligned to its
/// size; the operand's first element is in an atom's first row.
///   K-major:        rows of k. `stride_bytes`: to the next 8 rows of m or n, 8 s where a tile is
///                   s bytes wide; `leading_bytes` is ignored. The next 16 k: 32 bytes on.
///   MN-major:       rows of m or n. `leading_bytes`: to the next s bytes of m or n;
///                   `stride_bytes`: to the next 8 k.
///   none, K-major:  8 rows of 16 bytes are contiguous. `stride_bytes`: to the next 8 rows;
///                   `leading_bytes`: to the next 8 k.
///   none, MN-major: 8 k of 16 bytes are contiguous. `stride_bytes`: to the next 8 of m or n;
///                   `leading_bytes`: to the next 8 k.
/// Multiples of 16 below 2^18.
__device__ inline uint64_t operand_descriptor(const void* shared, uint32_t leading_bytes,
                                              uint32_t stride_bytes, OperandSwizzle swizzle) {
  const auto field = [](uint32_t bytes) { return static_cast<uint64_t>((bytes & 0x3ffff) >> 4); };
  return field(shared_address(shared)) | field(leading_bytes) << 16 | field(stride_bytes) << 32 |
         static_cast<uint64_t>(swizzle) << 62;
}

/// The operand `bytes` further on; a multiple of 16.
__device__ inline uint64_t advance_descriptor(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// Orders earlier accesses to D's and A's registers, and the warps of the group, before the
/// products that follow.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Commits the products that this warp has issued as a group.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `kPending` of this warp's groups are in flight.
template <int kPending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Keeps the compiler from moving accesses to D, or to A's registers, across this point. Costs no
/// instruction. For where ownership changes: before the fence and after the wait.
template <int kCount>
__device__ inline void wgmma_pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ inline void wgmma_pin(uint32_t (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// ---- parts of an instruction's name

struct Tf32;  // an operand's type: fp32 read as tf32

template <typename T>
struct WgmmaTypeText;
template <>
struct WgmmaTypeText<__nv_bfloat16> {
  static constexpr const char kText[] = "k16.f32.bf16.bf16";
};
template <>
struct WgmmaTypeText<__half> {
  static constexpr const char kText[] = "k16.f32.f16.f16";
};
template <>
struct WgmmaTypeText<Tf32> {
  static constexpr const char kText[] = "k8.f32.tf32.tf32";
};
template <>
struct WgmmaTypeText<__nv_fp8_e4m3> {
  static constexpr const char kText[] = "k32.f32.e4m3.e4m3";
};
template <>
struct WgmmaTypeText<__nv_fp8_e5m2> {
  static constexpr const char kText[] = "k32.f32.e5m2.e5m2";
};

/// Only 16-bit operands may be MN-major, and only their instructions have bits for it.
template <typename T, Major... kMajors>
struct WgmmaMajorText {
  static_assert(((kMajors == Major::k) && ...), "only 16-bit operands may be MN-major");
  static constexpr const char kText[] = "";
};
template <Major kMajor>
struct MajorText {
  static constexpr const char kText[] = {',', ' ', kMajor == Major::k ? '0' : '1', '\0'};
};
template <Major kMajorB>
struct WgmmaMajorText<__nv_bfloat16, kMajorB> : MajorText<kMajorB> {};
template <Major kMajorB>
struct WgmmaMajorText<__half, kMajorB> : MajorText<kMajorB> {};
template <Major kMajorA, Major kMajorB>
struct WgmmaMajorText<__nv_bfloat16, kMajorA, kMajorB> {
  static constexpr const char kText[] = {
      ',', ' ', kMajorA == Major::k ? '0' : '1', ',', ' ', kMajorB == Major::k ? '0' : '1', '\0'};
};
template <Major kMajorA, Major kMajorB>
struct WgmmaMajorText<__half, kMajorA, kMajorB> : WgmmaMajorText<__nv_bfloat16, kMajorA, kMajorB> {
};

// ---- D's registers, in the text and as operands

// clang-format off
#define WIDE_WGMMA_D_16 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WIDE_WGMMA_D_32 \
  WIDE_WGMMA_D_16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WIDE_WGMMA_D_64 \
  WIDE_WGMMA_D_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WIDE_WGMMA_D_96 \
  WIDE_WGMMA_D_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WIDE_WGMMA_D_128 \
  WIDE_WGMMA_D_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109" \
  ", %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123" \
  ", %124, %125, %126, %127"
#define WIDE_WGMMA_FOUR(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define WIDE_WGMMA_SIXTEEN(i) \
  WIDE_WGMMA_FOUR(i), WIDE_WGMMA_FOUR((i) + 4), WIDE_WGMMA_FOUR((i) + 8), WIDE_WGMMA_FOUR((i) + 12)
#define WIDE_WGMMA_SUMS_16 WIDE_WGMMA_SIXTEEN(0)
#define WIDE_WGMMA_SUMS_32 WIDE_WGMMA_SUMS_16, WIDE_WGMMA_SIXTEEN(16)
#define WIDE_WGMMA_SUMS_64 WIDE_WGMMA_SUMS_32, WIDE_WGMMA_SIXTEEN(32), WIDE_WGMMA_SIXTEEN(48)
#define WIDE_WGMMA_SUMS_96 WIDE_WGMMA_SUMS_64, WIDE_WGMMA_SIXTEEN(64), WIDE_WGMMA_SIXTEEN(80)
#define WIDE_WGMMA_SUMS_128 WIDE_WGMMA_SUMS_96, WIDE_WGMMA_SIXTEEN(96), WIDE_WGMMA_SIXTEEN(112)

// `count` is D's registers, twice that is n; the operands after them are numbered from `count` on.
#define WIDE_WGMMA_FROM_SHARED(count, n, at_a, at_b, at_accumulate, at_type, at_majors) \
  template <typename T, Major kMajorA = Major::k, Major kMajorB = Major::k> \
  __device__ inline void wgmma(float (&d)[count], uint64_t a, uint64_t b, bool accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " at_accumulate ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" n at_type " {" WIDE_WGMMA_D_##count "}, " \
                 at_a ", " at_b ", p, 1, 1" at_majors ";\n}" \
                 : WIDE_WGMMA_SUMS_##count \
                 : "l"(a), "l"(b), "r"(static_cast<uint32_t>(accumulate)), \
                   "C"(WgmmaTypeText<T>::kText), "C"(WgmmaMajorText<T, kMajorA, kMajorB>::kText)); \
  }
#define WIDE_WGMMA_FROM_REGISTERS(count, n, list_a, at_b, at_accumulate, at_type, at_majors) \
  template <typename T, Major kMajorB = Major::k> \
  __device__ inline void wgmma(float (&d)[count], const uint32_t (&a)[4], uint64_t b, \
                               bool accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " at_accumulate ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" n at_type " {" WIDE_WGMMA_D_##count "}, {" \
                 list_a "}, " at_b ", p, 1, 1" at_majors ";\n}" \
                 : WIDE_WGMMA_SUMS_##count \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), \
                   "r"(static_cast<uint32_t>(accumulate)), "C"(WgmmaTypeText<T>::kText), \
                   "C"(WgmmaMajorText<T, kMajorB>::kText)); \
  }

// ---- products. If `accumulate` is false, D is overwritten and need not be zeroed. The size of D
// determines n.

/// A and B in shared memory, by their operand_descriptor().
WIDE_WGMMA_FROM_SHARED(16, "32", "%16", "%17", "%18", "%19", "%20")
WIDE_WGMMA_FROM_SHARED(32, "64", "%32", "%33", "%34", "%35", "%36")
WIDE_WGMMA_FROM_SHARED(64, "128", "%64", "%65", "%66", "%67", "%68")
WIDE_WGMMA_FROM_SHARED(128, "256", "%128", "%129", "%130", "%131", "%132")

/// A in registers.
WIDE_WGMMA_FROM_REGISTERS(16, "32", "%16, %17, %18, %19", "%20", "%21", "%22", "%23")
WIDE_WGMMA_FROM_REGISTERS(32, "64", "%32, %33, %34, %35", "%36", "%37", "%38", "%39")
WIDE_WGMMA_FROM_REGISTERS(64, "128", "%64, %65, %66, %67", "%68", "%69", "%70", "%71")
WIDE_WGMMA_FROM_REGISTERS(96, "192", "%96, %97, %98, %99", "%100", "%101", "%102", "%103")
WIDE_WGMMA_FROM_REGISTERS(128, "256", "%128, %129, %130, %131", "%132", "%133", "%134", "%135")
// clang-format on

#undef WIDE_WGMMA_FROM_REGISTERS
#undef WIDE_WGMMA_FROM_SHARED
#undef WIDE_WGMMA_SUMS_128
#undef WIDE_WGMMA_SUMS_96
#undef WIDE_WGMMA_SUMS_64
#undef WIDE_WGMMA_SUMS_32
#undef WIDE_WGMMA_SUMS_16
#undef WIDE_WGMMA_SIXTEEN
#undef WIDE_WGMMA_FOUR
#undef WIDE_WGMMA_D_128
#undef WIDE_WGMMA_D_96
#undef WIDE_WGMMA_D_64
#undef WIDE_WGMMA_D_32
#undef WIDE_WGMMA_D_16

}  // namespace wide::kernels::arch
