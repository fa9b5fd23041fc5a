// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Codes of quantised weights: every one of every format against what its name says, rounding around
// every midpoint, and the order of a blob as a bijection.
#include "host/linear/quantized_codes.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace wide::test {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::fp8_e4m3, WeightFormat::int8,
                                     WeightFormat::fp6_e3m2, WeightFormat::int4,
                                     WeightFormat::fp4_e2m1};

/// The values of a format as its name defines them, without the code's NaN.
double meaning(WeightFormat format, uint32_t code) {
  const auto floating = [&](int mantissa_bits, int bias, int bits) {
    const uint32_t magnitude = code & ((1u << (bits - 1)) - 1);
    const auto mantissa = static_cast<double>(magnitude & ((1u << mantissa_bits) - 1));
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    const double value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return code >> (bits - 1) != 0 ? -value : value;
  };
  switch (format) {
    case WeightFormat::fp8_e4m3:
      return (code & 0x7f) == 0x7f ? std::nan("") : floating(3, 7, 8);
    case WeightFormat::int8:
      return static_cast<double>(code) - 128;
    case WeightFormat::fp6_e3m2:
      return floating(2, 3, 6);
    case WeightFormat::int4:
      return static_cast<double>(code) - 8;
    default:
      return floating(1, 1, 4);
  }
}

uint32_t num_codes(WeightFormat format) {
  return 1u << weight_format_bits(format);
}

}  // namespace

TEST_CASE("every code stands for what its format's name says, and is found again") {
  for (const WeightFormat format : kFormats) {
    INFO(weight_format_name(format));
    CHECK(parse_weight_format(weight_format_name(format)) == format);
    double largest = 0;
    for (uint32_t code = 0; code < num_codes(format); ++code) {
      const double value = meaning(format, code);
      if (std::isnan(value)) continue;
      REQUIRE(static_cast<double>(value_of_code(format, code)) == value);
      if (std::fabs(value) > largest_value(format)) continue;  // -8 and -128 are never written
      largest = std::max(largest, value);
      REQUIRE(code_of_value(format, value) == code);
    }
    CHECK(largest == largest_value(format));
  }
}

TEST_CASE("codes are the nearest, ties to even") {
  for (const WeightFormat format : kFormats) {
    INFO(weight_format_name(format));
    std::vector<std::pair<double, uint32_t>> values;
    for (uint32_t code = 0; code < num_codes(format); ++code) {
      const double value = meaning(format, code);
      // One zero, and what is written only.
      const bool is_usable = std::fabs(value) <= largest_value(format);
      if (is_usable && !(value == 0 && std::signbit(value))) values.emplace_back(value, code);
    }
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      const double low = values[i].first, high = values[i + 1].first, middle = (low + high) / 2;
      const bool is_integer = format == WeightFormat::int8 || format == WeightFormat::int4;
      const auto stored = [&](double value) {
        return meaning(format, code_of_value(format, value));
      };
      const uint32_t even = values[i].second % 2 == 0 ? values[i].second : values[i + 1].second;
      REQUIRE((stored(middle) == meaning(format, even) || (low < 0 && high == 0 && !is_integer)));
      REQUIRE(stored(std::nextafter(middle, low)) == low);
      REQUIRE(stored(std::nextafter(middle, high)) == high);
    }
    CHECK(meaning(format, code_of_value(format, 1e300)) == largest_value(format));
    CHECK(meaning(format, code_of_value(format, -1e300)) == -largest_value(format));
  }
}

TEST_CASE("the order of a blob is a bijection, and lanes keep to their own bytes") {
  for (const int bits : {8, 4, 2}) {
    std::set<int> seen;
    for (int output = 0; output < kQuantizedStrip; ++output) {
      for (int input = 0; input < kQuantizedTile; ++input) {
        const CodePlace place = code_place(bits, output, input);
        seen.insert(place.byte * 8 + place.shift);
        CHECK(place.shift % bits == 0);
        const int vector = bits == 2 ? 8 : 16, lane = 4 * (output % 8) + input % 8 / 2;
        CHECK(place.byte / vector % 32 == lane);
      }
    }
    CHECK(seen.size() == 1024);
    CHECK(*seen.rbegin() == 1024 * bits - bits);
  }
  std::set<int64_t> scales;
  for (int output = 0; output < kQuantizedStrip; ++output)
    scales.insert(quantized_scale_place(output));
  CHECK((scales.size() == 16 && *scales.begin() == 0 && *scales.rbegin() == 15));
  // Groups, their scales and tiles fill a strip without a gap.
  for (const int64_t group_size : {64, 128}) {
    const QuantizedWeight how{WeightFormat::fp6_e3m2, group_size, 1, 5 * 64 + 1};
    int64_t at = 0;
    for (int64_t tile = 0; tile < quantized_tiles(how); ++tile) {
      if (tile * 64 % group_size == 0) {
        CHECK(quantized_scales_offset(how, tile * 64 / group_size) == at);
        at += kQuantizedScaleBytes;
      }
      CHECK(quantized_tile_offset(how, tile) == at);
      at += quantized_tile_bytes(how.format);
    }
    CHECK(at == quantized_strip_bytes(how));
  }
}

TEST_CASE("rows are decoded as the places of their codes say, any piece of them") {
  for (const WeightFormat format : kFormats) {
    for (const int64_t group_size : {64, 128}) {
      const QuantizedWeight how{format, group_size, 20, 5 * 64 + 9};
      std::vector<uint8_t> blob(
          static_cast<size_t>(quantized_strips(how) * quantized_strip_bytes(how)));
      for (size_t i = 0; i < blob.size(); ++i)
        blob[i] = static_cast<uint8_t>(i * 37 + i / 256 * 11);
      const int bits = weight_format_bits(format);
      const auto expected = [&](int64_t output, int64_t k) {
        const uint8_t* strip = blob.data() + output / 16 * quantized_strip_bytes(how);
        const uint8_t* tile = strip + quantized_tile_offset(how, k / 64);
        const auto field = [&](int width, int offset) {
          const CodePlace place =
              code_place(width, static_cast<int>(output % 16), static_cast<int>(k % 64));
          return static_cast<uint32_t>(tile[offset + place.byte]) >> place.shift &
                 ((1u << width) - 1);
        };
        const uint32_t code = bits == 6 ? field(4, 0) | field(2, 512) << 4 : field(bits, 0);
        const uint8_t* scale = strip + quantized_scales_offset(how, k / group_size) +
                               2 * quantized_scale_place(output);
        const auto high = static_cast<uint32_t>(scale[1]) << 24;
        return std::bit_cast<float>(high | static_cast<uint32_t>(scale[0]) << 16) *
               static_cast<float>(meaning(format, code));
      };
      bool are_right = true;
      for (int64_t output = 0; output < how.out_features; ++output) {
        for (const int64_t first : {0, 64, 256}) {
          for (const int64_t count : {int64_t{1}, int64_t{64}, how.in_features - first}) {
            std::vector<float> got(static_cast<size_t>(count) + 1, 0.125f);
            decode_quantized_row(how, blob.data(), output, first, count, got.data());
            for (int64_t i = 0; i < count; ++i) {
              const float value = got[static_cast<size_t>(i)], right = expected(output, first + i);
              are_right =
                  are_right && (std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(right) ||
                                (std::isnan(value) && std::isnan(right)));
            }
            CHECK(got.back() == 0.125f);
          }
        }
      }
      CHECK(are_right);
    }
  }
}

}  // namespace wide::test
