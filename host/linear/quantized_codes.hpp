// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Codes of quantised weights on the host: their values, their places in a blob, and rows of them as
// floats. wide/weight_format.hpp describes the order; this is its only implementation outside the
// kernel and the reference.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "wide/quantize.hpp"

namespace wide {

/// The largest value of a code.
double largest_value(WeightFormat format);
/// The value of a code, without its group's scale.
float value_of_code(WeightFormat format, uint32_t code);
/// The values of all codes, made once.
const std::array<float, 256>& values_of_codes(WeightFormat format);
/// The code of the nearest value, ties to even, clamped to the largest value. Not for NaN.
uint32_t code_of_value(WeightFormat format, double value);

/// The scale of weights that share one, as quantize_weights() says: the first of equally good ones.
/// NaN where a weight is not finite.
float quantized_scale(WeightFormat format, std::span<const float> weights);
/// The code of weight / scale.
uint32_t quantized_code(WeightFormat format, float weight, float scale);

/// The number of tiles of 64 inputs.
constexpr int64_t quantized_tiles(const QuantizedWeight& weight) {
  return (weight.in_features + kQuantizedTile - 1) / kQuantizedTile;
}

/// The number of strips of 16 outputs.
constexpr int64_t quantized_strips(const QuantizedWeight& weight) {
  return (weight.out_features + kQuantizedStrip - 1) / kQuantizedStrip;
}

/// Where tile `tile` begins in its strip, after its group's scales.
constexpr int64_t quantized_tile_offset(const QuantizedWeight& weight, int64_t tile) {
  const int64_t group = tile / (weight.group_size / kQuantizedTile);
  return (group + 1) * kQuantizedScaleBytes + tile * quantized_tile_bytes(weight.format);
}

/// Where the 16 scales of group `group` begin in their strip, and where output r's is among them.
constexpr int64_t quantized_scales_offset(const QuantizedWeight& weight, int64_t group) {
  return quantized_tile_offset(weight, group * (weight.group_size / kQuantizedTile)) -
         kQuantizedScaleBytes;
}
constexpr int64_t quantized_scale_place(int64_t output) {
  return 2 * (output % 8) + output % kQuantizedStrip / 8;
}

/// A field of `bits` bits inside a plane.
struct CodePlace {
  int byte, shift;
};
constexpr CodePlace code_place(int bits, int output, int input) {
  const int lane = 4 * (output % 8) + input % 8 / 2, half = input % 2;
  const int field = 4 * (input / 16) + 2 * (input / 8 % 2) + output / 8, per_half = 16 / bits;
  const int bit = 32 * (field / per_half) + 16 * half + bits * (field % per_half);  // of the lane
  const int vector = bits == 2 ? 8 : 16, byte = bit / 8;  // contiguous bytes of a lane
  return {byte / vector * 32 * vector + lane * vector + byte % vector, bit % 8};
}

/// Inputs [first, first + count) of one output as floats, exactly; `first` a multiple of 64.
void decode_quantized_row(const QuantizedWeight& weight, const uint8_t* blob, int64_t output,
                          int64_t first, int64_t count, float* out);

/// One strip of a blob from up to 16 rows of in_features floats each.
void encode_quantized_strip(const QuantizedWeight& weight, std::span<const float> rows,
                            uint8_t* strip);

}  // namespace wide
