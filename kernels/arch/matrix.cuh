// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A warp's matrix fragments: to and from shared memory, and multiplied. A matrix is 8 x 8 elements
// of 16 bits; lane l holds columns 2 (l % 4) and the next of row l / 4, the first in the low half.
// Sources: PTX ISA, "Warp-Level Matrix Instructions: ldmatrix, stmatrix, mma.m16n8k16,
// mma.m16n8k8". All lanes of the warp call these together.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/arch/shared.cuh"

namespace wide::kernels::arch {

/// Parts of an instruction's name.
template <bool kIsTransposed>
struct TransposedText {
  static constexpr const char kText[] = "";
};
template <>
struct TransposedText<true> {
  static constexpr const char kText[] = ".trans";
};
template <typename T>
struct MatrixTypeText;
template <>
struct MatrixTypeText<__nv_bfloat16> {
  static constexpr const char kText[] = ".bf16";
};
template <>
struct MatrixTypeText<__half> {
  static constexpr const char kText[] = ".f16";
};

/// Loads one matrix into each register. `row` is in shared memory, 16-byte aligned: lanes 8 i to 8
/// i + 7 pass the eight rows of matrix i, the other lanes' is ignored. Transposed: lane l gets
/// column l / 4. An ordinary read of shared memory: barriers order it like loads.
template <bool kIsTransposed = false>
__device__ inline void ldmatrix(uint32_t (&d)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1%2.shared.b16 {%0}, [%1];"
               : "=r"(d[0])
               : "r"(shared_address(row)), "C"(TransposedText<kIsTransposed>::kText)
               : "memory");
}
template <bool kIsTransposed = false>
__device__ inline void ldmatrix(uint32_t (&d)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2%3.shared.b16 {%0, %1}, [%2];"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(shared_address(row)), "C"(TransposedText<kIsTransposed>::kText)
               : "memory");
}
template <bool kIsTransposed = false>
__device__ inline void ldmatrix(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4%5.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row)), "C"(TransposedText<kIsTransposed>::kText)
               : "memory");
}

/// The reverse of ldmatrix(). Compute capability 9.0.
template <bool kIsTransposed = false>
__device__ inline void stmatrix(void* row, const uint32_t (&s)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1%2.shared.b16 [%0], {%1};" ::"r"(shared_address(row)),
               "r"(s[0]), "C"(TransposedText<kIsTransposed>::kText)
               : "memory");
}
template <bool kIsTransposed = false>
__device__ inline void stmatrix(void* row, const uint32_t (&s)[2]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2%3.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)),
      "r"(s[0]), "r"(s[1]), "C"(TransposedText<kIsTransposed>::kText)
      : "memory");
}
template <bool kIsTransposed = false>
__device__ inline void stmatrix(void* row, const uint32_t (&s)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4%5.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(row)),
               "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "C"(TransposedText<kIsTransposed>::kText)
               : "memory");
}

/// d += a b with sums in fp32. a: 16 x 16, four matrices (rows 0-7 and 8-15 of columns 0-7, then of
/// columns 8-15), as ldmatrix() loads them. b: 16 x 8, two matrices of eight k each, lane l holding
/// column l / 4: what a transposed ldmatrix() yields from rows of k. d: 16 x 8, lane l holding two
/// columns of row l / 4, then of row l / 4 + 8.
template <typename T>
__device__ inline void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32%10%10.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
        "C"(MatrixTypeText<T>::kText));
}

/// d += a b of tf32 with sums in fp32: 16 x 8 times 8 x 8. An element is an fp32's 32 bits, the
/// last 13 of which are ignored (to_tf32() rounds them off). Seen as pairs of 16-bit columns, a and
/// b have mma_m16n8k16()'s layout, and ldmatrix() loads them that way.
__device__ inline void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// An fp32's bits rounded to tf32's 11 significant ones, to nearest, ties away from zero.
__device__ inline uint32_t to_tf32(uint32_t fp32) {
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(fp32)));
  return rounded;
}

}  // namespace wide::kernels::arch
