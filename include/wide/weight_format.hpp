// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Formats of quantised weights.
//
// A weight is scale * value(code). Scales are bf16: they have the range of fp32, and their eight
// significant bits times a code's are exact in fp32, so that the values of a blob do not depend on
// the kernel. Kernels multiply x with values, which are exact in fp16 and bf16, add up in fp32,
// and apply the scale to the sum: no weight is rounded again where a problem does not allow it.
//
// The order is the one in which the lanes of a warp hold operand A of mma.m16n8k16 (PTX ISA), so
// that a lane copies 16 bytes and needs no other lane's:
//
//   blob   strips of 16 outputs; outputs past the last one have codes of value 0 and scales 0
//   strip  groups of 64 or 128 inputs; inputs past the last one have codes of value 0
//   group  16 scales, output r's at place 2 (r % 8) + r / 8; then a tile for each 64 inputs
//   tile   one plane of the codes, 8 or 4 bits; fp6: a plane of their low 4 bits, then one of their
//          high 2 bits
//   plane  the code of output r, input k of the tile belongs to lane l = 4 (r % 8) + k % 8 / 2. Of
//          b-bit fields, it is field q = 4 (k / 16) + 2 (k / 8 % 2) + r / 8 of half h = k % 2: with
//          f = 16 / b, bits b (q % f) and up of the lane's 16-bit word 2 (q / f) + h. A lane's
//          words are 16 bytes (b = 8: twice 16, b = 2: 8); all lanes' first 16 bytes come first.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class WeightFormat : uint8_t {
  packed,    ///< not quantised: [N, out, in] of the problem's dtype
  fp8_e4m3,  ///< up to 448; the NaN codes are not used
  int8,      ///< code - 128, from -127 to 127
  fp6_e3m2,  ///< bias 3, no infinities: up to 28
  int4,      ///< code - 8, from -7 to 7: a group and its negative are quantised alike
  fp4_e2m1,  ///< 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; the sign is the highest bit
};

constexpr std::string_view weight_format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::packed:
      return "packed";
    case WeightFormat::fp8_e4m3:
      return "fp8_e4m3";
    case WeightFormat::int8:
      return "int8";
    case WeightFormat::fp6_e3m2:
      return "fp6_e3m2";
    case WeightFormat::int4:
      return "int4";
    case WeightFormat::fp4_e2m1:
      return "fp4_e2m1";
  }
  return "?";
}

inline constexpr auto kAllWeightFormats = enumerators<WeightFormat, weight_format_name>();

constexpr std::optional<WeightFormat> parse_weight_format(std::string_view name) {
  return parse_enumerator(name, kAllWeightFormats, weight_format_name);
}

/// Bits of a code; 0 for packed.
constexpr int weight_format_bits(WeightFormat format) {
  switch (format) {
    case WeightFormat::packed:
      return 0;
    case WeightFormat::fp8_e4m3:
    case WeightFormat::int8:
      return 8;
    case WeightFormat::fp6_e3m2:
      return 6;
    case WeightFormat::int4:
    case WeightFormat::fp4_e2m1:
      return 4;
  }
  return 0;
}

inline constexpr int kQuantizedStrip = 16;          ///< outputs
inline constexpr int kQuantizedTile = 64;           ///< inputs
inline constexpr int kQuantizedScaleBytes = 32;     ///< of a group's 16 outputs
inline constexpr int64_t kQuantizedAlignment = 16;  ///< of a blob's address, in bytes

constexpr int quantized_tile_bytes(WeightFormat format) {
  return kQuantizedStrip * kQuantizedTile * weight_format_bits(format) / 8;
}

/// Bytes of a row of a quantised table: dim codes, a gap, and in the last two bytes the scale, a
/// bf16, so that rows begin at multiples of 16 bytes. An element is scale * value(code), exact in
/// fp32, rounded once to the problem's dtype.
constexpr int64_t quantized_row_bytes(int64_t dim) {
  return (dim + 2 + 15) / 16 * 16;
}

}  // namespace wide
