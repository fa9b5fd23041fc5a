// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Codes of quantised weights -> pairs of fp16 or bf16 in registers, exactly, without their
// scales. A lane's part of a tile (wide/weight_format.hpp) is in the order of operand A of
// mma.m16n8k16: what remains are shifts, masks and one or two exact operations on both halves of
// a register.
//
// Integers become the last bits of a float with unit 1: 1024 + u in fp16, 128 + u in bf16, less the
// offset. Small floats keep their bits: sign, exponent and mantissa move to their places in the
// larger format, subnormals included, and a power of two corrects the bias.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "wide/weight_format.hpp"

namespace wide::kernels {

/// Both halves of a register, and constants in both.
template <class T>
using Two = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;

template <class T>
__device__ inline Two<T> two_of(uint32_t bits) {
  return *reinterpret_cast<const Two<T>*>(&bits);
}
template <class T>
__device__ inline uint32_t bits_of(Two<T> two) {
  return *reinterpret_cast<const uint32_t*>(&two);
}
__device__ constexpr uint32_t twice(uint32_t half) {
  return half | half << 16;
}

/// Left by `count` bits, right where that is negative. Callers mask off what crosses the middle of
/// the register.
__device__ inline uint32_t shifted(uint32_t bits, int count) {
  return count >= 0 ? bits << count : bits >> -count;
}

template <class T>
__device__ inline uint32_t minus(uint32_t bits, uint32_t offset) {
  return bits_of<T>(__hsub2(two_of<T>(bits), two_of<T>(twice(offset))));
}
template <class T>
__device__ inline uint32_t times(uint32_t bits, uint32_t factor) {
  return bits_of<T>(__hmul2(two_of<T>(bits), two_of<T>(twice(factor))));
}

/// A lane's codes of a tile of 16 outputs by 64 inputs.
template <WeightFormat format>
struct LaneCodes {
  static constexpr bool kHasHighBits = weight_format_bits(format) == 6;
  static constexpr int kVectors = weight_format_bits(format) == 8 ? 2 : 1;
  uint32_t words[4 * kVectors];
  uint32_t high[2];  // of fp6

  __device__ LaneCodes(const char* tile, int lane) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const uint4 four = *reinterpret_cast<const uint4*>(tile + (v * 32 + lane) * 16);
      words[4 * v] = four.x, words[4 * v + 1] = four.y;
      words[4 * v + 2] = four.z, words[4 * v + 3] = four.w;
    }
    if constexpr (kHasHighBits) {
      const uint2 two = *reinterpret_cast<const uint2*>(tile + 32 * 16 + lane * 8);
      high[0] = two.x, high[1] = two.y;
    }
  }
};

/// Register `p` of A's four in instruction `step` of the tile's four. Both are constants in
/// unrolled loops.
template <class T, WeightFormat format>
__device__ inline uint32_t decode_pair(const LaneCodes<format>& codes, int step, int p) {
  constexpr bool is_half = std::is_same_v<T, __half>;
  constexpr uint32_t kSigns = twice(0x8000);
  if constexpr (format == WeightFormat::int4) {
    constexpr uint32_t unit = is_half ? 0x6400 : 0x4300;  // 1024, 128
    const uint32_t codes_of_pair = shifted(codes.words[step], -4 * p) & twice(0x000f);
    return minus<T>(codes_of_pair | twice(unit), unit + 8);
  } else if constexpr (format == WeightFormat::fp4_e2m1) {
    // Exponent and mantissa to bits 11 to 9, or 8 to 6; then 2^14, or 2^126.
    const uint32_t word = codes.words[step];
    const uint32_t magnitude =
        shifted(word, (is_half ? 9 : 6) - 4 * p) & twice(is_half ? 0x0e00 : 0x01c0);
    const uint32_t sign = shifted(word, 12 - 4 * p) & kSigns;
    return times<T>(magnitude | sign, is_half ? 0x7400 : 0x7e80);
  } else if constexpr (format == WeightFormat::fp6_e3m2) {
    // The low four bits to bits 11 to 8, or 8 to 5; the exponent's top bit above; 2^12, or 2^124.
    const uint32_t high = codes.high[step / 2];
    const int at = 2 * (4 * (step % 2) + p);
    const uint32_t low =
        shifted(codes.words[step], (is_half ? 8 : 5) - 4 * p) & twice(is_half ? 0x0f00 : 0x01e0);
    const uint32_t exponent =
        shifted(high, (is_half ? 12 : 9) - at) & twice(is_half ? 0x1000 : 0x0200);
    const uint32_t sign = shifted(high, 14 - at) & kSigns;
    return times<T>(low | exponent | sign, is_half ? 0x6c00 : 0x7d80);
  } else if constexpr (format == WeightFormat::fp8_e4m3) {
    // Exponent and mantissa to bits 13 to 7, or 10 to 4; then 2^8, or 2^120.
    const uint32_t word = codes.words[2 * step + p / 2];
    const int at = 8 * (p % 2);
    const uint32_t magnitude =
        shifted(word, (is_half ? 7 : 4) - at) & twice(is_half ? 0x3f80 : 0x07f0);
    const uint32_t sign = shifted(word, 8 - at) & kSigns;
    return times<T>(magnitude | sign, is_half ? 0x5c00 : 0x7b80);
  } else {
    static_assert(format == WeightFormat::int8);
    const uint32_t word = codes.words[2 * step + p / 2];
    if constexpr (is_half) {  // 1024 + u, less 1152
      return minus<T>(__byte_perm(word, 0x64646464u, p % 2 == 0 ? 0x4240 : 0x4341), 0x6480);
    } else {  // bf16 has room for four bits: 16 (128 + h) - 2304 + (128 + l)
      const uint32_t low = shifted(word, -8 * (p % 2)) & twice(0x000f);
      const uint32_t high = shifted(word, -8 * (p % 2) - 4) & twice(0x000f);
      const Two<T> sixteens = __hfma2(two_of<T>(high | twice(0x4300)), two_of<T>(twice(0x4180)),
                                      two_of<T>(twice(0xc510)));
      return bits_of<T>(__hadd2(sixteens, two_of<T>(low | twice(0x4300))));
    }
  }
}

/// Operand A of instruction `step`.
template <class T, WeightFormat format>
__device__ inline void decode_step(const LaneCodes<format>& codes, int step, uint32_t (&a)[4]) {
#pragma unroll
  for (int p = 0; p < 4; ++p) a[p] = decode_pair<T>(codes, step, p);
}

}  // namespace wide::kernels
