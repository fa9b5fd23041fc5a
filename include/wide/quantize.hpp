// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights of linear: codes of 4, 6 or 8 bits, and one scale for each group of inputs of
// an output. A format is a way to store a member's parameters: one blob of bytes per member, so
// that replacing a member is copying one row of [N, member_bytes].
//
// A weight is scale * value(code). Scales are bf16: they have the range of fp32, and their eight
// significant bits times a code's are exact in fp32, so that what a blob stands for is no matter of
// who multiplies. Kernels multiply x with values, which are exact in fp16 and bf16, add up in fp32,
// and apply the scale to the sum: no weight is ever rounded again.
//
// The order is the one in which the lanes of a warp hold operand A of mma.m16n8k16 (PTX ISA), so
// that a lane copies 16 bytes and needs no other lane's:
//
//   blob   strips of 16 outputs; outputs behind the last one have codes of value 0 and scales 0
//   strip  groups of 64 or 128 inputs; inputs behind the last one have codes of value 0
//   group  16 scales, output r's at place 2 (r % 8) + r / 8; then a tile for each 64 inputs
//   tile   one plane of the codes, 8 or 4 bits; fp6: a plane of their low 4 bits, then one of their
//          high 2 bits
//   plane  the code of output r, input k of the tile belongs to lane l = 4 (r % 8) + k % 8 / 2. Of
//          b-bit fields, it is field q = 4 (k / 16) + 2 (k / 8 % 2) + r / 8 of half h = k % 2: with
//          f = 16 / b, bits b (q % f) and up of the lane's 16-bit word 2 (q / f) + h. A lane's
//          words are 16 bytes (b = 8: twice 16, b = 2: 8); all lanes' first 16 bytes come first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wide/context.hpp"
#include "wide/tensor.hpp"

namespace wide {

enum class WeightFormat : uint8_t {
  packed,    ///< not quantised: [N, out, in] of the problem's dtype
  fp8_e4m3,  ///< up to 448; the NaN codes are not used
  int8,      ///< code - 128, from -127 to 127
  fp6_e3m2,  ///< bias 3, no infinities: up to 28
  int4,      ///< code - 8, from -7 to 7: a group and its negative are quantised alike
  fp4_e2m1,  ///< 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; the sign is the highest bit
};

inline constexpr std::array<WeightFormat, 6> kAllWeightFormats{
    WeightFormat::packed,   WeightFormat::fp8_e4m3, WeightFormat::int8,
    WeightFormat::fp6_e3m2, WeightFormat::int4,     WeightFormat::fp4_e2m1};

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

constexpr std::optional<WeightFormat> parse_weight_format(std::string_view name) {
  for (WeightFormat format : kAllWeightFormats) {
    if (weight_format_name(format) == name) return format;
  }
  return std::nullopt;
}

/// Of one code; 0 for packed.
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

/// How one member's weight [out_features, in_features] is stored.
struct QuantizedWeight {
  WeightFormat format = WeightFormat::int4;
  int64_t group_size = 128;  ///< inputs that share a scale: 64 or 128
  int64_t out_features = 0;
  int64_t in_features = 0;
};

/// Bytes of a member's blob, a multiple of 32. Throws invalid_argument for the format packed,
/// another group size, negative sizes and what does not fit in 64 bits.
int64_t quantized_bytes(const QuantizedWeight& weight);
/// Bytes of one strip of 16 outputs.
int64_t quantized_strip_bytes(const QuantizedWeight& weight);

/// Members' weights -> blobs. The scale of a group is the one with the least squared error among
/// max |w| / (largest value), the power of two next above it, which loses nothing where the weights
/// are multiples of one, and, below 8 bits, ten smaller ones that clip the largest weights. Codes
/// are the nearest, ties to even; for given weights always the same. A group of zeros has scale 0;
/// one with a NaN or an infinity has scale NaN, so that the damage shows in that output alone.
/// Layout: members [out, in], any strides; blobs [N, quantized_bytes(weight)], bytes side by side.
/// Types: members fp32, fp16 or bf16; blobs uint8, rows aligned to kQuantizedAlignment.
/// Stream: on CUDA weights are staged through the host: this is no part of an execution, it
///         allocates, waits for `stream`, and cannot be captured. Done at return.
/// Errors: invalid_argument (sizes, shapes, dtypes, devices), out_of_memory, cuda.
void quantize_weights(const Context& context, const QuantizedWeight& weight,
                      std::span<const ConstTensorView> members, const TensorView& blobs,
                      Stream stream);

/// blobs -> scale * value(code), rounded to the members' dtype: exact in fp32. Under the terms of
/// quantize_weights.
void dequantize_weights(const Context& context, const QuantizedWeight& weight,
                        const ConstTensorView& blobs, std::span<const TensorView> members,
                        Stream stream);

/// What quantising one member's weight has cost; NaN where a weight was not finite.
struct QuantizationError {
  double max_abs = 0;             ///< largest |stored - weight|
  double rms = 0;                 ///< root of the mean square of stored - weight
  double relative_frobenius = 0;  ///< root of sum (stored - weight)^2 / sum weight^2
  double snr_db = 0;              ///< -20 log10 of that; infinite where nothing is lost
  int64_t worst_output = 0;       ///< of the group with the largest sum of squares
  int64_t worst_group = 0;
};

/// Compares a member's weight [out, in] with its blob [quantized_bytes(weight)]. Under the terms of
/// quantize_weights.
QuantizationError quantization_error(const Context& context, const QuantizedWeight& weight,
                                     const ConstTensorView& member, const ConstTensorView& blob,
                                     Stream stream);

}  // namespace wide
