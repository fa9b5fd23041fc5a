// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Conversions between the element types and float or double, on the host and without CUDA, so
// that the CPU device, references and tools give the same bits in every build. Integer arithmetic
// and one addition per value: compilers vectorise the loops, and flush-to-zero modes that an
// application may have switched on change nothing.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "wide/dtype.hpp"

namespace wide {

// The library's copies and an engine's, which may be compiled by other flags, have different names:
// otherwise a linker would take one of them for both.
#ifdef WIDE_BUILDS_LIBRARY
inline namespace library {
#else
inline namespace engine {
#endif

namespace detail {

/// Also where a compiler is told that there is none.
constexpr bool is_nan(double value) {
  constexpr uint64_t kMagnitude = ~uint64_t{0} >> 1, kInfinity = uint64_t{0x7ff} << 52;
  return (std::bit_cast<uint64_t>(value) & kMagnitude) > kInfinity;
}

/// A binary format of sign, exponent and `mantissa_bits` in `total_bits`.
struct SmallFloat {
  int total_bits;
  int mantissa_bits;
  int bias;
  uint32_t max_finite;  ///< code of the largest finite value
  uint32_t infinity;    ///< what an overflow becomes: infinity, or NaN where there is none
  uint32_t nan;
};

inline constexpr SmallFloat kFp16{16, 10, 15, 0x7bff, 0x7c00, 0x7fff};
inline constexpr SmallFloat kBf16{16, 7, 127, 0x7f7f, 0x7f80, 0x7fff};
inline constexpr SmallFloat kFp8E4m3{8, 3, 7, 0x7e, 0x7f, 0x7f};
inline constexpr SmallFloat kFp8E5m2{8, 2, 15, 0x7b, 0x7c, 0x7f};

template <SmallFloat format>
constexpr float decode(uint32_t code) {
  constexpr int shift = 23 - format.mantissa_bits;
  constexpr uint32_t sign_bit = 1u << (format.total_bits - 1);
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  const uint32_t sign = (code & sign_bit) << (32 - format.total_bits);
  const uint32_t magnitude = code & (sign_bit - 1);
  if constexpr (format.bias == 127) {
    return std::bit_cast<float>(sign | magnitude << shift);
  } else {
    const uint32_t normal = (magnitude << shift) + rebias;
    // A subnormal gets the smallest normal's exponent and loses the implied one by subtraction.
    constexpr uint32_t min_normal = rebias + (1u << 23);
    const float subnormal =
        std::bit_cast<float>((magnitude << shift) + min_normal) - std::bit_cast<float>(min_normal);
    const uint32_t special = magnitude == format.infinity && format.infinity != format.nan
                                 ? 0x7f800000u
                                 : 0x7fc00000u | (magnitude << shift);
    const uint32_t bits = magnitude > format.max_finite ? special
                          : magnitude >= (1u << format.mantissa_bits)
                              ? normal
                              : std::bit_cast<uint32_t>(subnormal);
    return std::bit_cast<float>(sign | bits);
  }
}

/// Round to nearest, ties to even.
template <SmallFloat format>
constexpr uint32_t encode(float value) {
  constexpr int shift = 23 - format.mantissa_bits;
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 31) << (format.total_bits - 1);
  const uint32_t half = (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u);
  uint32_t code = (magnitude + half - rebias) >> shift;
  if constexpr (format.bias != 127) {
    constexpr uint32_t min_normal = rebias + (1u << 23);
    // The last place of `unit` is the format's smallest subnormal: the addition rounds.
    constexpr uint32_t unit = static_cast<uint32_t>(127 + 24 - format.bias - format.mantissa_bits)
                              << 23;
    const uint32_t rounded =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < min_normal ? magnitude : 0u) +
                                std::bit_cast<float>(unit)) -
        unit;
    code = magnitude < min_normal ? rounded : code;
  }
  code = code > format.max_finite ? format.infinity : code;
  return magnitude > 0x7f800000u ? format.nan : sign | code;
}

/// A float that rounds to every narrower format as `value` itself would: where `value` lies
/// between two floats, the one with an odd last bit (round to odd).
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (is_nan(value) || back == value) return nearest;
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if ((bits & 1u) != 0) return nearest;
  return std::bit_cast<float>(std::fabs(back) > std::fabs(value) ? bits - 1 : bits + 1);
}

template <class Integer>
Integer round_to_integer(double value) {
  // Both limits as doubles: the upper one of int64_t rounds up, hence >=.
  constexpr auto low = static_cast<double>(std::numeric_limits<Integer>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<Integer>::max());
  if (is_nan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= low) return std::numeric_limits<Integer>::min();
  if (rounded >= high) return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(rounded);
}

template <class Value>
Value load_at(const void* base, int64_t index) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(base) + index * int64_t{sizeof(Value)},
              sizeof(Value));
  return value;
}

template <class Value>
void store_at(void* base, int64_t index, Value value) {
  std::memcpy(static_cast<char*>(base) + index * int64_t{sizeof(Value)}, &value, sizeof(Value));
}

}  // namespace detail

// To float: exact. From float: to nearest even; what lies above the largest finite value by half
// a unit or more becomes infinity. fp8_e4m3 has none: NaN, but its largest value, 448, is even, so
// that 464, half a unit above, is 448. Every NaN becomes the positive one with all mantissa bits
// set.
constexpr float fp16_to_float(uint16_t code) {
  return detail::decode<detail::kFp16>(code);
}
constexpr uint16_t float_to_fp16(float value) {
  return static_cast<uint16_t>(detail::encode<detail::kFp16>(value));
}
constexpr float bf16_to_float(uint16_t code) {
  return detail::decode<detail::kBf16>(code);
}
constexpr uint16_t float_to_bf16(float value) {
  return static_cast<uint16_t>(detail::encode<detail::kBf16>(value));
}
constexpr float fp8_e4m3_to_float(uint8_t code) {
  return detail::decode<detail::kFp8E4m3>(code);
}
constexpr uint8_t float_to_fp8_e4m3(float value) {
  return static_cast<uint8_t>(detail::encode<detail::kFp8E4m3>(value));
}
constexpr float fp8_e5m2_to_float(uint8_t code) {
  return detail::decode<detail::kFp8E5m2>(code);
}
constexpr uint8_t float_to_fp8_e5m2(float value) {
  return static_cast<uint8_t>(detail::encode<detail::kFp8E5m2>(value));
}

/// Element `index` of a row of `dtype`; int64 beyond 2^53 is rounded.
inline double load_element(const void* base, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::fp32:
      return static_cast<double>(detail::load_at<float>(base, index));
    case Dtype::fp16:
      return static_cast<double>(fp16_to_float(detail::load_at<uint16_t>(base, index)));
    case Dtype::bf16:
      return static_cast<double>(bf16_to_float(detail::load_at<uint16_t>(base, index)));
    case Dtype::fp8_e4m3:
      return static_cast<double>(fp8_e4m3_to_float(detail::load_at<uint8_t>(base, index)));
    case Dtype::fp8_e5m2:
      return static_cast<double>(fp8_e5m2_to_float(detail::load_at<uint8_t>(base, index)));
    case Dtype::int32:
      return static_cast<double>(detail::load_at<int32_t>(base, index));
    case Dtype::int64:
      return static_cast<double>(detail::load_at<int64_t>(base, index));
    case Dtype::uint8:
      return static_cast<double>(detail::load_at<uint8_t>(base, index));
  }
  return 0.0;
}

/// Rounds once, from double to the dtype. Integers: to nearest even, clamped; NaN becomes 0.
inline void store_element(void* base, Dtype dtype, int64_t index, double value) {
  switch (dtype) {
    case Dtype::fp32:
      return detail::store_at(base, index, static_cast<float>(value));
    case Dtype::fp16:
      return detail::store_at(base, index, float_to_fp16(detail::round_to_odd(value)));
    case Dtype::bf16:
      return detail::store_at(base, index, float_to_bf16(detail::round_to_odd(value)));
    case Dtype::fp8_e4m3:
      return detail::store_at(base, index, float_to_fp8_e4m3(detail::round_to_odd(value)));
    case Dtype::fp8_e5m2:
      return detail::store_at(base, index, float_to_fp8_e5m2(detail::round_to_odd(value)));
    case Dtype::int32:
      return detail::store_at(base, index, detail::round_to_integer<int32_t>(value));
    case Dtype::int64:
      return detail::store_at(base, index, detail::round_to_integer<int64_t>(value));
    case Dtype::uint8:
      return detail::store_at(base, index, detail::round_to_integer<uint8_t>(value));
  }
}

/// `count` contiguous elements to float; integers are rounded.
inline void decode_row(Dtype dtype, const void* source, float* out, int64_t count) {
  const auto each = [&](auto code, auto convert) {
    using Code = decltype(code);
    for (int64_t i = 0; i < count; ++i) out[i] = convert(detail::load_at<Code>(source, i));
  };
  switch (dtype) {
    case Dtype::fp32:
      if (count > 0) std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case Dtype::fp16:
      return each(uint16_t{}, [](uint16_t code) { return fp16_to_float(code); });
    case Dtype::bf16:
      return each(uint16_t{}, [](uint16_t code) { return bf16_to_float(code); });
    case Dtype::fp8_e4m3:
      return each(uint8_t{}, [](uint8_t code) { return fp8_e4m3_to_float(code); });
    case Dtype::fp8_e5m2:
      return each(uint8_t{}, [](uint8_t code) { return fp8_e5m2_to_float(code); });
    case Dtype::int32:
      return each(int32_t{}, [](int32_t value) { return static_cast<float>(value); });
    case Dtype::int64:
      return each(int64_t{}, [](int64_t value) { return static_cast<float>(value); });
    case Dtype::uint8:
      return each(uint8_t{}, [](uint8_t value) { return static_cast<float>(value); });
  }
}

/// `count` floats to contiguous elements, each rounded once.
inline void encode_row(Dtype dtype, const float* source, void* out, int64_t count) {
  const auto each = [&](auto convert) {
    for (int64_t i = 0; i < count; ++i) detail::store_at(out, i, convert(source[i]));
  };
  switch (dtype) {
    case Dtype::fp32:
      if (count > 0) std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case Dtype::fp16:
      return each([](float value) { return float_to_fp16(value); });
    case Dtype::bf16:
      return each([](float value) { return float_to_bf16(value); });
    case Dtype::fp8_e4m3:
      return each([](float value) { return float_to_fp8_e4m3(value); });
    case Dtype::fp8_e5m2:
      return each([](float value) { return float_to_fp8_e5m2(value); });
    case Dtype::int32:
      return each([](float value) { return detail::round_to_integer<int32_t>(value); });
    case Dtype::int64:
      return each([](float value) { return detail::round_to_integer<int64_t>(value); });
    case Dtype::uint8:
      return each([](float value) { return detail::round_to_integer<uint8_t>(value); });
  }
}

}  // namespace library or engine

}  // namespace wide
