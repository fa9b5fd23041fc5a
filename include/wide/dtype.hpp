// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Element types of tensors, and the few facts about them that validation, memory planning and
// error bounds need. uint8 is for bytes whose meaning another header gives: quantised weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class Dtype : uint8_t { fp32, fp16, bf16, fp8_e4m3, fp8_e5m2, int32, int64, uint8 };

/// Size of one element in bytes.
constexpr int64_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::int64:
      return 8;
    case Dtype::fp32:
    case Dtype::int32:
      return 4;
    case Dtype::fp16:
    case Dtype::bf16:
      return 2;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
    case Dtype::uint8:
      return 1;
  }
  return 0;
}

constexpr bool is_fp8(Dtype dtype) {
  return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2;
}

/// The one spelling used on the command line, in JSON and in messages.
constexpr std::string_view dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return "fp32";
    case Dtype::fp16:
      return "fp16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp8_e4m3:
      return "fp8_e4m3";
    case Dtype::fp8_e5m2:
      return "fp8_e5m2";
    case Dtype::int32:
      return "int32";
    case Dtype::int64:
      return "int64";
    case Dtype::uint8:
      return "uint8";
  }
  return "?";
}

inline constexpr auto kAllDtypes = enumerators<Dtype, dtype_name>();

constexpr std::optional<Dtype> parse_dtype(std::string_view name) {
  return parse_enumerator(name, kAllDtypes, dtype_name);
}

constexpr bool is_floating(Dtype dtype) {
  return dtype != Dtype::int32 && dtype != Dtype::int64 && dtype != Dtype::uint8;
}

/// Largest relative error of rounding a real number to nearest: 2^-p for p significant bits.
/// Zero for integers.
constexpr double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return 0x1p-24;
    case Dtype::fp16:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-8;
    case Dtype::fp8_e4m3:
      return 0x1p-4;
    case Dtype::fp8_e5m2:
      return 0x1p-3;
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
      return 0.0;
  }
  return 0.0;
}

/// Smallest positive value, subnormals included. Zero for integers.
constexpr double min_subnormal(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return 0x1p-149;
    case Dtype::fp16:
      return 0x1p-24;
    case Dtype::bf16:
      return 0x1p-133;
    case Dtype::fp8_e4m3:
      return 0x1p-9;
    case Dtype::fp8_e5m2:
      return 0x1p-16;
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
      return 0.0;
  }
  return 0.0;
}

}  // namespace wide
