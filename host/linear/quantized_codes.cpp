// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Codes are found in double precision: a weight has 24 significant bits and a scale 8, so that a
// quotient in double lies on the same side of every midpoint as the true one, and "nearest" is
// exact.
#include "host/linear/quantized_codes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "host/core/vectorised.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr detail::SmallFloat kFp6E3m2{6, 2, 3, 0x1f, 0x1f, 0x1f};
constexpr detail::SmallFloat kFp4E2m1{4, 1, 1, 0x7, 0x7, 0x7};

/// Not the exported value_of_code(), which a shared library could not inline into loops.
template <WeightFormat format>
float value_of(uint32_t code) {
  if constexpr (format == WeightFormat::fp8_e4m3) {
    return detail::decode<detail::kFp8E4m3>(code);
  } else if constexpr (format == WeightFormat::int8) {
    return static_cast<float>(static_cast<int32_t>(code) - 128);
  } else if constexpr (format == WeightFormat::fp6_e3m2) {
    return detail::decode<kFp6E3m2>(code);
  } else if constexpr (format == WeightFormat::int4) {
    return static_cast<float>(static_cast<int32_t>(code) - 8);
  } else {
    return detail::decode<kFp4E2m1>(code);
  }
}

using Values = std::array<float, 256>;

Values make_values(WeightFormat format) {
  Values values{};
  for (uint32_t code = 0; code < 1u << weight_format_bits(format); ++code) {
    values[code] = value_of_code(format, code);
  }
  return values;
}

/// A plane inside a tile, and which bits of a code it holds.
struct Plane {
  int bits, offset, shift;
};

std::span<const Plane> planes_of(WeightFormat format) {
  static constexpr Plane kEight[] = {{8, 0, 0}}, kFour[] = {{4, 0, 0}};
  static constexpr Plane kSix[] = {{4, 0, 0}, {2, kQuantizedStrip * kQuantizedTile / 2, 4}};
  switch (weight_format_bits(format)) {
    case 8:
      return kEight;
    case 6:
      return kSix;
    default:
      return kFour;
  }
}

void put_code(WeightFormat format, uint8_t* tile, int output, int input, uint32_t code) {
  for (const Plane& plane : planes_of(format)) {
    const CodePlace place = code_place(plane.bits, output, input);
    const uint32_t mask = (1u << plane.bits) - 1, field = code >> plane.shift & mask;
    uint8_t& byte = tile[plane.offset + place.byte];
    byte = static_cast<uint8_t>((byte & ~(mask << place.shift)) | field << place.shift);
  }
}

float decoded_scale(const uint8_t* scales, int64_t output) {
  return bf16_to_float(detail::load_at<uint16_t>(scales, quantized_scale_place(output)));
}

float nearest_bf16(double value) {
  return bf16_to_float(float_to_bf16(detail::round_to_odd(value)));
}

/// A format's values are multiples of 2^(e - mantissa bits), e the value's exponent, but at least a
/// least one. Integers are a format of which all values have that.
struct Grid {
  double largest, least_power;
  double rounding;  ///< 2^(52 - mantissa bits)
};

constexpr Grid grid_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::packed:
      return {};
    case WeightFormat::fp8_e4m3:
      return {448, 0x1p-6, 0x1p49};
    case WeightFormat::int8:
      return {127, 0x1p7, 0x1p45};
    case WeightFormat::fp6_e3m2:
      return {28, 0x1p-2, 0x1p50};
    case WeightFormat::int4:
      return {7, 0x1p3, 0x1p49};
    case WeightFormat::fp4_e2m1:
      return {6, 0x1p0, 0x1p51};
  }
  return {};
}

/// The nearest value, ties to even, with the sign of `value`. Without branches: a double that is
/// so large that the grid is its last place rounds what is added to it.
double nearest(const Grid& grid, double value) {
  constexpr uint64_t kExponent = 0x7ff0'0000'0000'0000;
  const double magnitude = std::min(std::fabs(value), grid.largest);
  const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) & kExponent);
  const double large = std::max(power, grid.least_power) * grid.rounding;
  return std::copysign(magnitude + large - large, value);
}

double quotient(float weight, double scale) {
  return scale == 0 ? 0 : static_cast<double>(weight) / scale;
}

/// The sum of squared errors by each scale: vectors have a scale a lane, so that every sum has the
/// order of the weights.
template <size_t kCount>
std::array<double, kCount> squared_errors(WeightFormat format, std::span<const float> weights,
                                          const std::array<double, kCount>& scales) {
  std::array<double, kCount> sums{};
  const Grid grid = grid_of(format);
  call_vectorised([&, scales] {
    std::array<double, kCount> own{};
    for (const float weight : weights) {
      for (size_t i = 0; i < kCount; ++i) {
        const double error =
            nearest(grid, quotient(weight, scales[i])) * scales[i] - static_cast<double>(weight);
        own[i] += error * error;
      }
    }
    sums = own;
  });
  return sums;
}

/// The first of the candidates, rounded to bf16, by which the error is least.
template <size_t kCount>
float best_scale(WeightFormat format, std::span<const float> weights,
                 std::array<double, kCount> candidates) {
  for (double& scale : candidates) scale = static_cast<double>(nearest_bf16(scale));
  const auto errors = squared_errors(format, weights, candidates);
  const auto least = std::min_element(errors.begin(), errors.end());
  return static_cast<float>(candidates[static_cast<size_t>(least - errors.begin())]);
}

}  // namespace

double largest_value(WeightFormat format) {
  return grid_of(format).largest;
}

float value_of_code(WeightFormat format, uint32_t code) {
  switch (format) {
    case WeightFormat::packed:
      return 0;
    case WeightFormat::fp8_e4m3:
      return value_of<WeightFormat::fp8_e4m3>(code);
    case WeightFormat::int8:
      return value_of<WeightFormat::int8>(code);
    case WeightFormat::fp6_e3m2:
      return value_of<WeightFormat::fp6_e3m2>(code);
    case WeightFormat::int4:
      return value_of<WeightFormat::int4>(code);
    case WeightFormat::fp4_e2m1:
      return value_of<WeightFormat::fp4_e2m1>(code);
  }
  return 0;
}

uint32_t code_of_value(WeightFormat format, double value) {
  const auto stored = static_cast<float>(nearest(grid_of(format), value));  // exactly
  switch (format) {
    case WeightFormat::packed:
      return 0;
    case WeightFormat::fp8_e4m3:
      return float_to_fp8_e4m3(stored);
    case WeightFormat::int8:
      return static_cast<uint32_t>(stored + 128);
    case WeightFormat::fp6_e3m2:
      return detail::encode<kFp6E3m2>(stored);
    case WeightFormat::int4:
      return static_cast<uint32_t>(stored + 8);
    case WeightFormat::fp4_e2m1:
      return detail::encode<kFp4E2m1>(stored);
  }
  return 0;
}

namespace {

/// Codes of one output in a tile: those of a plane of `bits` bits, added to `codes` at `shift`. As
/// code_place() says, a lane's words have the codes of two neighbouring inputs and of outputs r and
/// r + 8, and eight inputs are in words of four lanes at the same place.
template <int bits>
void add_plane(const uint8_t* plane, int row, int shift, uint32_t (&codes)[kQuantizedTile]) {
  constexpr int kVector = bits == 2 ? 8 : 16;  // contiguous bytes of a lane
  constexpr int kInputs = 64 / bits;           // of the four lanes' words
  constexpr auto kShifts = [] {
    std::array<uint32_t, kQuantizedTile> shifts{};
    for (uint32_t k = 0; k < kQuantizedTile; ++k)
      shifts[k] = k % 2 * 16 + k % kInputs / 8 * 2 * bits;
    return shifts;
  }();
  const uint8_t* lanes = plane + row % 8 * 4 * kVector;
  uint32_t words[kQuantizedTile];  // one for each input
  for (int first = 0; first < kQuantizedTile; first += kInputs) {
    const int byte = 4 * first / kInputs;
    const uint8_t* there = lanes + byte / kVector * 32 * kVector + byte % kVector;
    for (int lane = 0; lane < 4; ++lane) {
      const auto word = detail::load_at<uint32_t>(there + lane * kVector, 0);
      for (int k = 0; k < kInputs; k += 8) {
        words[first + k + 2 * lane] = words[first + k + 2 * lane + 1] = word;
      }
    }
  }
  const auto own = static_cast<uint32_t>(row / 8 * bits);
  constexpr uint32_t kMask = (1u << bits) - 1;
  for (size_t k = 0; k < kQuantizedTile; ++k) {
    codes[k] |= (words[k] >> (kShifts[k] + own) & kMask) << shift;
  }
}

struct Piece {
  int64_t first, count;
  float* out;
};

template <WeightFormat format>
void decode_row_of(const QuantizedWeight& weight, const uint8_t* blob, int64_t output,
                   const Piece& piece) {
  constexpr int kBits = weight_format_bits(format);
  const uint8_t* strip = blob + output / kQuantizedStrip * quantized_strip_bytes(weight);
  const auto row = static_cast<int>(output % kQuantizedStrip);
  for (int64_t done = 0; done < piece.count; done += kQuantizedTile) {
    const int64_t index = (piece.first + done) / kQuantizedTile;
    const uint8_t* tile = strip + quantized_tile_offset(weight, index);
    const float scale = decoded_scale(
        strip + quantized_scales_offset(weight, index * kQuantizedTile / weight.group_size), row);
    uint32_t codes[kQuantizedTile] = {};
    add_plane<kBits == 8 ? 8 : 4>(tile, row, 0, codes);
    if (kBits == 6) add_plane<2>(tile + planes_of(format)[1].offset, row, 4, codes);
    float values[kQuantizedTile];
    for (int k = 0; k < kQuantizedTile; ++k) values[k] = scale * value_of<format>(codes[k]);
    std::copy_n(values, std::min<int64_t>(kQuantizedTile, piece.count - done), piece.out + done);
  }
}

}  // namespace

const std::array<float, 256>& values_of_codes(WeightFormat format) {
  static const auto all = [] {
    std::array<Values, kAllWeightFormats.size()> tables{};
    for (const WeightFormat each : kAllWeightFormats) {
      if (each != WeightFormat::packed) tables[static_cast<size_t>(each)] = make_values(each);
    }
    return tables;
  }();
  return all[static_cast<size_t>(format)];
}

uint32_t quantized_code(WeightFormat format, float weight, float scale) {
  return code_of_value(format, quotient(weight, static_cast<double>(scale)));
}

float quantized_scale(WeightFormat format, std::span<const float> weights) {
  double largest = 0;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, static_cast<double>(std::fabs(weight)));
  }
  if (largest == 0) return 0;
  const double whole = largest / largest_value(format);
  int exponent = 0;
  const double mantissa = std::frexp(whole, &exponent);
  const double power = std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  if (weight_format_bits(format) == 8) return best_scale<2>(format, weights, {whole, power});
  constexpr size_t kClippings = 10;
  std::array<double, 2 + kClippings> candidates{whole, power};
  for (size_t i = 1; i <= kClippings; ++i)
    candidates[1 + i] = whole * static_cast<double>(32 - i) / 32;
  return best_scale(format, weights, candidates);
}

void decode_quantized_row(const QuantizedWeight& weight, const uint8_t* blob, int64_t output,
                          int64_t first, int64_t count, float* out) {
  const auto decode = [&]<WeightFormat format>() {
    call_vectorised([&] { decode_row_of<format>(weight, blob, output, {first, count, out}); });
  };
  switch (weight.format) {
    case WeightFormat::packed:
      return;
    case WeightFormat::fp8_e4m3:
      return decode.operator()<WeightFormat::fp8_e4m3>();
    case WeightFormat::int8:
      return decode.operator()<WeightFormat::int8>();
    case WeightFormat::fp6_e3m2:
      return decode.operator()<WeightFormat::fp6_e3m2>();
    case WeightFormat::int4:
      return decode.operator()<WeightFormat::int4>();
    case WeightFormat::fp4_e2m1:
      return decode.operator()<WeightFormat::fp4_e2m1>();
  }
}

void encode_quantized_strip(const QuantizedWeight& weight, std::span<const float> rows,
                            uint8_t* strip) {
  const auto in = static_cast<size_t>(weight.in_features);
  const auto group_size = static_cast<size_t>(weight.group_size);
  const auto num_rows = static_cast<int>(rows.size() / in);
  const int tile_bytes = quantized_tile_bytes(weight.format);
  std::memset(strip, 0, static_cast<size_t>(quantized_strip_bytes(weight)));
  for (int64_t tile = 0; tile < quantized_tiles(weight); ++tile) {
    // All codes of value 0: 0x80 in bytes, 0x88 in pairs of four bits, 0 in floating formats.
    const int zero = weight.format == WeightFormat::int8   ? 0x80
                     : weight.format == WeightFormat::int4 ? 0x88
                                                           : 0;
    std::memset(strip + quantized_tile_offset(weight, tile), zero, static_cast<size_t>(tile_bytes));
  }
  for (int row = 0; row < num_rows; ++row) {
    for (size_t first = 0; first < in; first += group_size) {
      const auto group =
          rows.subspan(static_cast<size_t>(row) * in + first, std::min(group_size, in - first));
      const float scale = quantized_scale(weight.format, group);
      uint8_t* scales =
          strip + quantized_scales_offset(weight, static_cast<int64_t>(first / group_size));
      detail::store_at(scales, quantized_scale_place(row), float_to_bf16(scale));
      if (std::isnan(scale)) continue;
      for (size_t i = 0; i < group.size(); ++i) {
        const auto k = static_cast<int64_t>(first + i);
        put_code(weight.format, strip + quantized_tile_offset(weight, k / kQuantizedTile), row,
                 static_cast<int>(k % kQuantizedTile),
                 quantized_code(weight.format, group[i], scale));
      }
    }
  }
}

}  // namespace wide
