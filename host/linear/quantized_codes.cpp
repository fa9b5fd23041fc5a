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
      return fp8_e4m3_to_float(static_cast<uint8_t>(code));
    case WeightFormat::int8:
      return static_cast<float>(code) - 128;
    case WeightFormat::fp6_e3m2:
      return detail::decode<kFp6E3m2>(code);
    case WeightFormat::int4:
      return static_cast<float>(code) - 8;
    case WeightFormat::fp4_e2m1:
      return detail::decode<kFp4E2m1>(code);
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
  const uint8_t* strip = blob + output / kQuantizedStrip * quantized_strip_bytes(weight);
  const auto row = static_cast<int>(output % kQuantizedStrip);
  const Values& values = values_of_codes(weight.format);
  const auto planes = planes_of(weight.format);
  std::array<CodePlace, kQuantizedTile> places[2];
  for (size_t p = 0; p < planes.size(); ++p) {
    for (int k = 0; k < kQuantizedTile; ++k) {
      places[p][static_cast<size_t>(k)] = code_place(planes[p].bits, row, k);
    }
  }
  for (int64_t done = 0; done < count; done += kQuantizedTile) {
    const int64_t tile_index = (first + done) / kQuantizedTile;
    const uint8_t* tile = strip + quantized_tile_offset(weight, tile_index);
    const float scale = decoded_scale(
        strip + quantized_scales_offset(weight, tile_index * kQuantizedTile / weight.group_size),
        row);
    const int64_t left = std::min<int64_t>(count - done, kQuantizedTile);
    for (int64_t k = 0; k < left; ++k) {
      uint32_t code = 0;
      for (size_t p = 0; p < planes.size(); ++p) {
        const CodePlace place = places[p][static_cast<size_t>(k)];
        const uint32_t field =
            static_cast<uint32_t>(tile[planes[p].offset + place.byte]) >> place.shift &
            ((1u << planes[p].bits) - 1);
        code |= field << planes[p].shift;
      }
      out[done + k] = scale * values[code];
    }
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
