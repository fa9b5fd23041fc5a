// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// PTX's number formats on the host: how a register's bits become a value, and back with the
// rounding that an instruction names.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace wide::ptx {

/// IEEE half: the compiler's own, with one rounding an operation.
using Half = _Float16;
struct Bfloat {
  uint16_t bits = 0;
};

inline float to_float(Bfloat value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}
inline float to_float(Half value) {
  return static_cast<float>(value);
}

/// To nearest even. A double carries products and sums of two bfloats exactly enough that this is
/// the only rounding.
inline Bfloat to_bfloat(double value) {
  if (std::isnan(value)) return {0x7fff};
  // Through float rounded to odd, so that the second rounding sees what the first dropped.
  float near = static_cast<float>(value);
  auto word = std::bit_cast<uint32_t>(near);
  if (std::isfinite(near) && static_cast<double>(near) != value) {
    const bool is_beyond = std::fabs(static_cast<double>(near)) > std::fabs(value);
    if (is_beyond) --word;
    word |= 1;
  }
  if (std::isinf(near)) return {static_cast<uint16_t>(word >> 16)};
  word += 0x7fff + (word >> 16 & 1);
  return {static_cast<uint16_t>(word >> 16)};
}

template <class T>
struct Format {  // integers
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static T value(Word word) { return static_cast<T>(word); }
  static Word word(T value) {
    return static_cast<Word>(static_cast<std::make_unsigned_t<T>>(value));
  }
};
template <>
struct Format<float> {
  using Word = uint32_t;
  static float value(Word word) { return std::bit_cast<float>(word); }
  static Word word(float value) { return std::bit_cast<Word>(value); }
};
template <>
struct Format<double> {
  using Word = uint64_t;
  static double value(Word word) { return std::bit_cast<double>(word); }
  static Word word(double value) { return std::bit_cast<Word>(value); }
};
template <>
struct Format<Half> {
  using Word = uint32_t;
  static Half value(Word word) { return std::bit_cast<Half>(static_cast<uint16_t>(word)); }
  static Word word(Half value) {  // NaN by its bits: comparing halves is a call
    const Word bits = std::bit_cast<uint16_t>(value);
    return (bits & 0x7fffu) > 0x7c00u ? Word{0x7fff} : bits;
  }
};
template <>
struct Format<Bfloat> {
  using Word = uint32_t;
  static Bfloat value(Word word) { return {static_cast<uint16_t>(word)}; }
  static Word word(Bfloat value) { return value.bits; }
};

/// A 16-bit format's word of a value, rounded once, to nearest even.
template <class T>
uint32_t half_word(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return Format<Half>::word(static_cast<Half>(value));
  } else {
    return Format<Bfloat>::word(to_bfloat(value));
  }
}

/// The host's rounding while it lives; outside of it that is to nearest, as all arithmetic here is.
class Rounding {
 public:
  explicit Rounding(int mode) : is_other_(mode != FE_TONEAREST) {
    if (is_other_) std::fesetround(mode);  // which waits for all arithmetic under way
  }
  ~Rounding() {
    if (is_other_) std::fesetround(FE_TONEAREST);
  }
  Rounding(const Rounding&) = delete;

 private:
  bool is_other_;
};

inline float flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

/// The one NaN that fp32 arithmetic makes; the host keeps an operand's bits or sets the sign.
inline float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(0x7fffffffu);
}

/// PTX's min and max: a NaN loses against a number, -0 is below +0.
template <class T>
T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}
template <class T>
T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

}  // namespace wide::ptx
