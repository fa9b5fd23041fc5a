// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rounding into small formats. All of them are one procedure on the bits of an fp32: what is
// rounded up to the next power of two carries into the exponent by itself, and so does a subnormal
// that becomes normal.
#include "verify/simt/formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace wide::simt {

namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;
constexpr int kMantissaBits = 23, kBias = 127;

/// Bits of a magnitude in a format, with no limit to the exponent.
uint32_t rounded(uint32_t magnitude, int mantissa_bits, int bias) {
  const int shift = kMantissaBits - mantissa_bits;
  if (magnitude < static_cast<uint32_t>(kBias - bias + 1) << kMantissaBits) {
    // The sum's last place is the smallest subnormal: the addition rounds, ties to even.
    const uint32_t offset = static_cast<uint32_t>(kBias - bias + shift + 1) << kMantissaBits;
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(offset);
    return std::bit_cast<uint32_t>(sum) - offset;
  }
  const uint32_t is_odd = magnitude >> shift & 1;
  const uint32_t half = (uint32_t{1} << (shift - 1)) - 1 + is_odd;
  return (magnitude + half - (static_cast<uint32_t>(kBias - bias) << kMantissaBits)) >> shift;
}

uint8_t to_fp8(float value, int mantissa_bits, int bias, uint32_t largest) {
  if (std::isnan(value)) return 0x7f;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t result = std::min(rounded(bits & kMagnitude, mantissa_bits, bias), largest);
  return static_cast<uint8_t>(bits >> 31 << 7 | result);
}

constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    // Read as fp16, whose bias is 8 larger.
    const auto half = static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7);
    table[bits] = from_f16(half) * 0x1p8f;
  }
  table[0x7f] = std::bit_cast<float>(0x7fffffffu);
  table[0xff] = std::bit_cast<float>(0xffffffffu);
  return table;
}();

}  // namespace

float from_e4m3(uint8_t bits) {
  return kE4m3[bits];
}

uint16_t to_f16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t result = std::min(rounded(bits & kMagnitude, 10, 15), uint32_t{0x7c00});
  return static_cast<uint16_t>(bits >> 31 << 15 | result);
}

uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint32_t to_tf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return kMagnitude;
  return (bits & kInfinity) == kInfinity ? bits : (bits + 0x1000) & 0xffffe000u;
}

uint8_t to_e4m3(float value) {
  return to_fp8(value, 3, 7, 0x7e);
}

uint8_t to_e5m2(float value) {
  return to_fp8(value, 2, 15, 0x7b);
}

}  // namespace wide::simt
