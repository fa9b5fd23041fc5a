// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values of matrix elements by the formats' definitions, for tests: independent of the simulated
// GPU's own conversions.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "verify/simt/async.hpp"

namespace wide::simt {

inline constexpr std::array kMatrixTypes{MatrixType::f16, MatrixType::bf16, MatrixType::tf32,
                                         MatrixType::e4m3, MatrixType::e5m2};

inline int bits_of(MatrixType type) {
  if (type == MatrixType::tf32) return 32;
  return type == MatrixType::e4m3 || type == MatrixType::e5m2 ? 8 : 16;
}

/// (-1)^s 2^(e - bias) (1 + m / 2^mantissa), or without the 1 and with e = 1 where e is 0.
inline double ieee_value(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double sign = (bits >> (mantissa_bits + exponent_bits) & 1) != 0 ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) {
    if (has_infinity) return mantissa == 0 ? sign * INFINITY : NAN;
    if (mantissa == (1 << mantissa_bits) - 1) return NAN;
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias));
}

/// tf32: as a whole fp32, for accumulators too; operands have their low 13 bits clear.
inline double value_of(MatrixType type, uint32_t bits) {
  switch (type) {
    case MatrixType::f16:
      return ieee_value(bits, 5, 10, true);
    case MatrixType::bf16:
      return ieee_value(bits, 8, 7, true);
    case MatrixType::e4m3:
      return ieee_value(bits, 4, 3, false);
    case MatrixType::e5m2:
      return ieee_value(bits, 5, 2, true);
    case MatrixType::tf32:
      break;
  }
  return ieee_value(bits, 8, 23, true);
}

inline bool same_value(float got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  return static_cast<double>(got) == expected && std::signbit(got) == std::signbit(expected);
}

/// A multiple of 1/2 in [-3.5, 3.5]: products of two of them are multiples of 1/4 up to 12.25, so
/// that sums of 32 and more of them are exact in fp16 as well.
inline uint32_t small_element(MatrixType type, std::mt19937& random) {
  const auto halves = static_cast<uint32_t>(random() % 8);
  const uint32_t sign = random() % 2;
  if (halves == 0) return 0;
  const int exponent = std::bit_width(halves) - 2;                       // of the value
  const uint32_t fraction = halves << (3 - std::bit_width(halves)) & 3;  // two bits after the one
  const auto encode = [&](int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    return sign << (exponent_bits + mantissa_bits) |
           static_cast<uint32_t>(exponent + bias) << mantissa_bits |
           fraction << (mantissa_bits - 2);
  };
  switch (type) {
    case MatrixType::f16:
      return encode(5, 10);
    case MatrixType::bf16:
      return encode(8, 7);
    case MatrixType::e4m3:
      return encode(4, 3);
    case MatrixType::e5m2:
      return encode(5, 2);
    case MatrixType::tf32:
      break;
  }
  return encode(8, 23);
}

/// Registers full of small elements.
template <size_t Count>
void fill_small(MatrixType type, std::array<uint32_t, Count>& words, std::mt19937& random) {
  for (uint32_t& word : words) {
    word = 0;
    for (int shift = 0; shift < 32; shift += bits_of(type)) {
      word |= small_element(type, random) << shift;
    }
  }
}

}  // namespace wide::simt
