// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Small floating-point formats to fp32 and back. To fp32 is exact and without branches, so that
// loops over operands become vector instructions; back rounds to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace wide::simt {

constexpr float from_f16(uint16_t bits) {
  // The exponent moves from bias 15 to 127; the product also normalises subnormals.
  const float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  const uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | special |
                              (bits & 0x8000u) << 16);
}
constexpr float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}
/// Tensor cores read the upper 19 bits of a register.
constexpr float from_tf32(uint32_t bits) {
  return std::bit_cast<float>(bits & 0xffffe000u);
}
/// 4 bits of exponent, 3 of mantissa; no infinities, and one NaN of each sign.
float from_e4m3(uint8_t bits);
/// 5 and 2 bits: the upper half of an fp16.
constexpr float from_e5m2(uint8_t bits) {
  return from_f16(static_cast<uint16_t>(bits << 8));
}

uint16_t to_f16(float value);
uint16_t to_bf16(float value);
/// cvt.rna: ties away from zero.
uint32_t to_tf32(float value);
/// cvt.satfinite: what is too large becomes the largest finite number.
uint8_t to_e4m3(float value);
uint8_t to_e5m2(float value);

}  // namespace wide::simt
