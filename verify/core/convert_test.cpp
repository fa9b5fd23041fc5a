// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Conversions of every code of the small formats, and rounding around every midpoint, against
// CUDA's own host conversions where the toolkit is there and against a definition in doubles
// everywhere.
#include "wide/convert.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#if WIDE_HAS_CUDA
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

namespace {

using wide::Dtype;

struct Format {
  Dtype dtype;
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  uint32_t num_codes;
};
constexpr Format kFormats[] = {{Dtype::fp16, 5, 10, true, 1u << 16},
                               {Dtype::bf16, 8, 7, true, 1u << 16},
                               {Dtype::fp8_e4m3, 4, 3, false, 1u << 8},
                               {Dtype::fp8_e5m2, 5, 2, true, 1u << 8}};

/// What the standard says a code means.
double meaning(const Format& f, uint32_t code) {
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t exponent = (code >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
  const bool is_negative = (code >> (f.mantissa_bits + f.exponent_bits)) & 1u;
  const uint32_t all_ones = (1u << f.exponent_bits) - 1;
  const int bias = static_cast<int>(all_ones >> 1);
  double value = 0;
  if (f.has_infinity && exponent == all_ones) {
    value = mantissa == 0 ? HUGE_VAL : NAN;
  } else if (!f.has_infinity && exponent == all_ones && mantissa == (1u << f.mantissa_bits) - 1) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - f.mantissa_bits);
  } else {
    value =
        std::ldexp(1.0 + std::ldexp(mantissa, -f.mantissa_bits), static_cast<int>(exponent) - bias);
  }
  return is_negative ? -value : value;
}

// Eight bytes, because the compiler sees all widths of load_element at once.
double decoded(Dtype dtype, uint64_t code) {
  return wide::load_element(&code, dtype, 0);
}

uint32_t encoded(Dtype dtype, double value) {
  uint64_t code = 0;
  wide::store_element(&code, dtype, 0, value);
  return static_cast<uint32_t>(code);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE("every code of every small format decodes to what it means, and back") {
  for (const Format& f : kFormats) {
    int64_t wrong = 0;
    for (uint32_t code = 0; code < f.num_codes; ++code) {
      const double value = meaning(f, code);
      wrong += !same(decoded(f.dtype, code), value);
      if (!std::isnan(value)) wrong += encoded(f.dtype, value) != code;
    }
    INFO(wide::dtype_name(f.dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("values between two codes round to the nearer, ties to the even code") {
  for (const Format& f : kFormats) {
    int64_t wrong = 0;
    for (uint32_t code = 0; code + 1 < f.num_codes / 2; ++code) {
      const double low = meaning(f, code), high = meaning(f, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const double middle = (low + high) / 2;  // exact in double
      const uint32_t even = code % 2 == 0 ? code : code + 1;
      wrong += encoded(f.dtype, middle) != even;
      wrong += encoded(f.dtype, std::nextafter(middle, low)) != code;
      wrong += encoded(f.dtype, std::nextafter(middle, high)) != code + 1;
      wrong += encoded(f.dtype, -middle) != (even | f.num_codes / 2);
    }
    INFO(wide::dtype_name(f.dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("overflow becomes infinity, or NaN in the format that has none") {
  CHECK(std::isinf(decoded(Dtype::fp16, encoded(Dtype::fp16, 65520.0))));
  CHECK(decoded(Dtype::fp16, encoded(Dtype::fp16, 65519.9)) == 65504.0);
  CHECK(std::isnan(decoded(Dtype::fp8_e4m3, encoded(Dtype::fp8_e4m3, 1000.0))));
  CHECK(decoded(Dtype::fp8_e4m3, encoded(Dtype::fp8_e4m3, 460.0)) == 448.0);
  CHECK(std::isinf(decoded(Dtype::fp8_e5m2, encoded(Dtype::fp8_e5m2, -1e6))));
}

TEST_CASE("a NaN of any sign and payload stays NaN") {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu}) {
    const float value = std::bit_cast<float>(bits);
    CHECK(wide::float_to_fp16(value) == 0x7fff);
    CHECK(wide::float_to_bf16(value) == 0x7fff);
    CHECK(wide::float_to_fp8_e4m3(value) == 0x7f);
    CHECK(wide::float_to_fp8_e5m2(value) == 0x7f);
  }
  for (const Format& f : kFormats) CHECK(std::isnan(decoded(f.dtype, encoded(f.dtype, NAN))));
}

TEST_CASE("integers round to nearest even and clamp") {
  int64_t value = 0;
  wide::store_element(&value, Dtype::int64, 0, 1e30);
  CHECK(value == std::numeric_limits<int64_t>::max());
  wide::store_element(&value, Dtype::int64, 0, 2.5);
  CHECK(value == 2);
  int32_t narrow = 0;
  wide::store_element(&narrow, Dtype::int32, 0, -1e30);
  CHECK(narrow == std::numeric_limits<int32_t>::min());
  uint8_t byte = 0;
  wide::store_element(&byte, Dtype::uint8, 0, 255.5);
  CHECK(byte == 255);
  wide::store_element(&byte, Dtype::uint8, 0, -0.6);
  CHECK(byte == 0);
  CHECK(wide::load_element(&(byte = 200), Dtype::uint8, 0) == 200);
}

TEST_CASE("a row of every code of a small format decodes and encodes as its elements do") {
  for (const Format& f : kFormats) {
    const bool is_wide = f.num_codes > 256;
    std::vector<uint8_t> codes(f.num_codes * (is_wide ? 2 : 1)), back(codes.size());
    for (uint32_t code = 0; code < f.num_codes; ++code) {
      for (size_t byte = 0; byte < codes.size() / f.num_codes; ++byte) {
        codes[code * (codes.size() / f.num_codes) + byte] = static_cast<uint8_t>(code >> 8 * byte);
      }
    }
    std::vector<float> values(f.num_codes);
    wide::decode_row(f.dtype, codes.data(), values.data(), f.num_codes);
    wide::encode_row(f.dtype, values.data(), back.data(), f.num_codes);
    int64_t wrong = 0;
    for (uint32_t code = 0; code < f.num_codes; ++code) {
      const double value = meaning(f, code), again = wide::load_element(back.data(), f.dtype, code);
      wrong += !same(static_cast<double>(values[code]), value) || !same(again, value);
    }
    INFO(wide::dtype_name(f.dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows convert as single elements do") {
  for (const Format& f : kFormats) {
    std::vector<float> values, back(1000);
    for (int i = 0; i < 1000; ++i)
      values.push_back(std::ldexp(static_cast<float>(i) - 500.3f, i % 12 - 8));
    std::vector<uint8_t> codes(8000);  // room for the widest dtype
    wide::encode_row(f.dtype, values.data(), codes.data(), 1000);
    wide::decode_row(f.dtype, codes.data(), back.data(), 1000);
    int64_t wrong = 0;
    for (int i = 0; i < 1000; ++i) {
      wrong += !same(wide::load_element(codes.data(), f.dtype, i),
                     static_cast<double>(back[static_cast<size_t>(i)]));
      if (std::isnan(back[static_cast<size_t>(i)])) continue;  // whose sign is nobody's promise
      wrong += encoded(f.dtype, static_cast<double>(values[static_cast<size_t>(i)])) !=
               encoded(f.dtype, static_cast<double>(back[static_cast<size_t>(i)]));
    }
    CHECK(wrong == 0);
  }
}

#if WIDE_HAS_CUDA
TEST_CASE("fp32 to the small formats agrees with CUDA's host conversions") {
  int64_t wrong = 0;
  for (uint32_t step = 0; step < 1u << 20; ++step) {
    const uint32_t bits = step * 4099u;
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const __half narrow = __float2half_rn(value);
    const __nv_bfloat16 brain = __float2bfloat16_rn(value);
    wrong += std::bit_cast<uint16_t>(__half_raw(narrow)) != wide::float_to_fp16(value);
    wrong += std::bit_cast<uint16_t>(__nv_bfloat16_raw(brain)) != wide::float_to_bf16(value);
    wrong += __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E5M2) != wide::float_to_fp8_e5m2(value);
    const uint8_t e4m3 = __nv_cvt_float_to_fp8(value, __NV_NOSAT, __NV_E4M3);
    const bool is_nan = (e4m3 & 0x7f) == 0x7f;  // the sign of an overflow's NaN is nobody's promise
    wrong += is_nan ? (wide::float_to_fp8_e4m3(value) & 0x7f) != 0x7f
                    : e4m3 != wide::float_to_fp8_e4m3(value);
  }
  CHECK(wrong == 0);
}
#endif
