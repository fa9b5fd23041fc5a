// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cvt between integers, floats, halves, tf32 and the 8-bit floats. Every value goes through an
// integer of 64 bits or a double, which hold all of them exactly; the one rounding is the last
// step.
#include <algorithm>

#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"
#include "verify/simt/formats.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;

enum Note : size_t { kFrom, kTo, kRoundMode, kFlags };
constexpr int64_t kToInteger = 1, kSaturate = 2, kFlush = 4, kRelu = 8, kAway = 16;

bool is_integer(Type type) {
  return type.kind == 's' || type.kind == 'u' || type.kind == 'b';
}

int64_t encode(Type type) {
  return type.kind | int64_t{type.bits} << 8 | int64_t{type.is_pair} << 16;
}
Type decode(int64_t note) {
  return {static_cast<char>(note & 255), static_cast<int>(note >> 8 & 255), (note >> 16 & 1) != 0};
}

uint64_t low_bits(uint64_t value, int bits) {
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}
int64_t sign_extended(uint64_t value, int bits) {
  return bits == 64 ? static_cast<int64_t>(value)
                    : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

double float_value(Type type, uint64_t word) {
  if (type.kind == 'B') return static_cast<double>(to_float(Bfloat{static_cast<uint16_t>(word)}));
  if (type.bits == 16) return static_cast<double>(Format<Half>::value(static_cast<uint32_t>(word)));
  if (type.bits == 32)
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(word)));
  return std::bit_cast<double>(word);
}

double rounded(double value, int mode) {
  const Rounding rounding(mode);
  volatile double source = value;
  return std::nearbyint(source);
}

float to_float_rounded(double value, int mode) {
  const Rounding rounding(mode);
  volatile double source = value;
  volatile float result = static_cast<float>(source);
  return result;
}

/// Halves in other modes than nearest: truncate, then step where the mode says so.
template <class T>
uint32_t rounded_half(double value, int mode) {
  uint32_t word = half_word<T>(value);
  if (mode == FE_TONEAREST || std::isnan(value) || std::isinf(value)) return word;
  const auto back = static_cast<double>(to_float(Format<T>::value(word)));
  const bool is_low_wanted = mode == FE_DOWNWARD || (mode == FE_TOWARDZERO && value > 0);
  const bool is_high_wanted = mode == FE_UPWARD || (mode == FE_TOWARDZERO && value < 0);
  if (is_low_wanted && back > value) word = back > 0 ? word - 1 : word + 1;
  if (is_high_wanted && back < value) word = back < 0 ? word - 1 : word + 1;
  return word;
}

uint64_t float_word(Type type, double value, int mode) {
  if (type.kind == 'B') return rounded_half<Bfloat>(value, mode);
  if (type.bits == 16) return rounded_half<Half>(value, mode);
  if (type.bits == 32) return std::bit_cast<uint32_t>(to_float_rounded(value, mode));
  return std::bit_cast<uint64_t>(value);
}

/// To an integer: what is too large is the nearest there is.
uint64_t integer_word(Type type, double value) {
  if (type.kind == 's') {
    const double limit = std::ldexp(1.0, type.bits - 1);
    if (value >= limit)
      return low_bits(static_cast<uint64_t>((uint64_t{1} << (type.bits - 1)) - 1), type.bits);
    if (value < -limit) return low_bits(uint64_t{1} << (type.bits - 1), type.bits);
    return low_bits(static_cast<uint64_t>(static_cast<int64_t>(value)), type.bits);
  }
  if (value <= 0) return 0;
  if (value >= std::ldexp(1.0, type.bits)) return low_bits(~uint64_t{0}, type.bits);
  return static_cast<uint64_t>(value);
}

/// "Zero if source is not .f64 and destination is not .s64, .u64. Otherwise 1 << (BitWidth(dst) -
/// 1)".
uint64_t integer_of_nan(Type from, Type to) {
  return from.bits == 64 || to.bits == 64 ? uint64_t{1} << (to.bits - 1) : 0;
}

uint64_t from_integer(const Step& s, Type from, Type to, uint64_t word) {
  const int mode = static_cast<int>(s.in.numbers[kRoundMode]);
  word = low_bits(word, from.bits);
  const int64_t value =
      from.kind == 's' ? sign_extended(word, from.bits) : static_cast<int64_t>(word);
  if (is_integer(to)) {
    if ((s.in.numbers[kFlags] & kSaturate) == 0) return static_cast<uint64_t>(value);
    const bool is_big = from.kind != 's' && from.bits == 64 && value < 0;
    const double wide = is_big ? 0x1p64 : static_cast<double>(value);
    return integer_word(to, wide);
  }
  // 64 bits do not fit a double: straight to the format, in the mode that is asked for.
  const Rounding rounding(mode);
  volatile int64_t source = value;
  const bool is_unsigned = from.kind != 's';
  if (to.bits == 32) {
    volatile float f = is_unsigned ? static_cast<float>(static_cast<uint64_t>(source))
                                   : static_cast<float>(source);
    return std::bit_cast<uint32_t>(float{f});
  }
  volatile double x = is_unsigned ? static_cast<double>(static_cast<uint64_t>(source))
                                  : static_cast<double>(source);
  return float_word(to, x, mode);
}

uint64_t from_float(const Step& s, Type from, Type to, uint64_t word) {
  const int mode = static_cast<int>(s.in.numbers[kRoundMode]);
  const int64_t flags = s.in.numbers[kFlags];
  double value = float_value(from, word);
  if ((flags & kFlush) != 0 && from == Type{'f', 32})
    value = static_cast<double>(flush(static_cast<float>(value)));
  if ((flags & kToInteger) != 0) value = rounded(value, mode);
  if (is_integer(to)) {
    return std::isnan(value) ? integer_of_nan(from, to) : integer_word(to, value);
  }
  if ((flags & kSaturate) != 0) value = std::isnan(value) ? 0 : std::clamp(value, 0.0, 1.0);
  if ((flags & kRelu) != 0) value = value < 0 ? 0 : value;
  uint64_t out = float_word(to, value, mode);
  if ((flags & kFlush) != 0 && to == Type{'f', 32})
    out = std::bit_cast<uint32_t>(flush(std::bit_cast<float>(static_cast<uint32_t>(out))));
  return out;
}

void convert(Step& s) {
  const Type from = decode(s.in.numbers[kFrom]), to = decode(s.in.numbers[kTo]);
  const Lanes& target = s.in.arguments[0].parts[0];
  for_lanes(s.mask, [&](int l) {
    const uint64_t word = s.value(1, l);
    uint64_t out =
        is_integer(from) ? from_integer(s, from, to, word) : from_float(s, from, to, word);
    // A narrow signed result fills a wider register with its sign.
    if (to.kind == 's' && to.bits < 64) {
      out = static_cast<uint64_t>(sign_extended(low_bits(out, to.bits), to.bits));
      if (!target.is_wide && to.bits == 16) out &= 0xffff;
    } else {
      out = low_bits(out, to.bits);
    }
    s.set(target, l, out);
  });
}

// The usual ones, without questions.
template <class From, class To>
void widen(Step& s) {
  using WF = typename Format<From>::Word;
  using WT = typename Format<To>::Word;
  WT* d = s.result<WT>();
  const WF* a = s.source<WF>(1);
  s.each([=](int l) { d[l] = Format<To>::word(static_cast<To>(Format<From>::value(a[l]))); });
}

/// Two floats into a pair: the first operand is the high half.
template <class T>
void pack_halves(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const int mode = static_cast<int>(s.in.numbers[kRoundMode]);
  const bool has_relu = (s.in.numbers[kFlags] & kRelu) != 0;
  for_lanes(s.mask, [&](int l) {
    const auto word = [&](size_t i) {
      double value = static_cast<double>(std::bit_cast<float>(s.source<uint32_t>(i)[l]));
      if (has_relu && value < 0) value = 0;
      return rounded_half<T>(value, mode);
    };
    d[l] = word(1) << 16 | word(2);
  });
}

/// tf32 has 10 bits of mantissa; ties go away from zero with .rna, to even with .rn. NaN stays NaN,
/// even one whose only bits are cut off.
void to_tf32(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t* a = s.source<uint32_t>(1);
  const bool is_away = (s.in.numbers[kFlags] & kAway) != 0;
  s.each([=](int l) {
    const bool is_special = (a[l] & 0x7f800000u) == 0x7f800000u;
    const uint32_t half = is_away ? 0x1000u : 0xfffu + (a[l] >> 13 & 1);
    const bool is_nan = (a[l] & 0x7fffffffu) > 0x7f800000u;
    d[l] = is_nan ? 0x7fffe000u : (is_special ? a[l] : a[l] + half) & ~0x1fffu;
  });
}

template <char kKind>
uint8_t to_8bit(float value) {
  return kKind == '4' ? simt::to_e4m3(value) : simt::to_e5m2(value);
}
template <char kKind>
float from_8bit(uint32_t word) {
  return kKind == '4' ? simt::from_e4m3(static_cast<uint8_t>(word))
                      : simt::from_e5m2(static_cast<uint8_t>(word));
}

/// e4m3x2 or e5m2x2 from two floats, or from a pair of halves.
template <char kKind>
void pack_8bit(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const bool has_relu = (s.in.numbers[kFlags] & kRelu) != 0;
  const bool is_from_pair = decode(s.in.numbers[kFrom]).is_pair;
  for_lanes(s.mask, [&](int l) {
    float high = 0, low = 0;
    if (is_from_pair) {
      const uint32_t pair = s.source<uint32_t>(1)[l];
      high = to_float(Format<Half>::value(pair >> 16));
      low = to_float(Format<Half>::value(pair));
    } else {
      high = std::bit_cast<float>(s.source<uint32_t>(1)[l]);
      low = std::bit_cast<float>(s.source<uint32_t>(2)[l]);
    }
    if (has_relu) high = std::max(high, 0.0f), low = std::max(low, 0.0f);
    d[l] = uint32_t{to_8bit<kKind>(high)} << 8 | to_8bit<kKind>(low);
  });
}

template <char kKind>
void unpack_8bit(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t* a = s.source<uint32_t>(1);
  for_lanes(s.mask, [&](int l) {
    const auto half = [&](uint32_t byte) {
      return Format<Half>::word(static_cast<Half>(from_8bit<kKind>(byte)));
    };
    d[l] = half(a[l] >> 8 & 255) << 16 | half(a[l] & 255);
  });
}

/// Whether a register is as wide as the type. A wider one is legal: its low bits are taken.
bool is_as_wide(const Argument& argument, Type type) {
  const Lanes& lanes = argument.parts.at(0);
  return lanes.is_constant || lanes.is_wide == (type.bits == 64);
}

/// Null where there is none, or registers are wider than their types.
Execute fast_conversion(const Instruction& in, Type from, Type to) {
  if (!is_as_wide(in.arguments.at(0), to) || !is_as_wide(in.arguments.at(1), from)) return nullptr;
  if (from == Type{'s', 32} && (to == Type{'s', 64} || to == Type{'u', 64}))
    return widen<int32_t, int64_t>;
  if (from == Type{'u', 32} && (to == Type{'s', 64} || to == Type{'u', 64}))
    return widen<uint32_t, uint64_t>;
  if (from.bits == 64 && is_integer(from) && is_integer(to) && to.bits == 32)
    return widen<uint64_t, uint32_t>;
  if (from == Type{'f', 16} && to == Type{'f', 32}) return widen<Half, float>;
  return nullptr;
}

void take_rounding(Decoder& d) {
  int64_t flags = 0;
  const std::string_view word =
      d.take_one({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
  const std::string_view mode = word.substr(0, 2);
  d.in.numbers[kRoundMode] = mode == "rz"   ? FE_TOWARDZERO
                             : mode == "rm" ? FE_DOWNWARD
                             : mode == "rp" ? FE_UPWARD
                                            : FE_TONEAREST;
  if (word.ends_with("i")) flags |= kToInteger;
  if (word == "rna") flags |= kAway;
  if (d.take("sat")) flags |= kSaturate;
  if (d.take("ftz")) flags |= kFlush;
  if (d.take("relu")) flags |= kRelu;
  d.in.numbers[kFlags] = flags;
}

}  // namespace

void decode_convert(Decoder& d) {
  d.in.kind = InstructionClass::convert;
  take_rounding(d);
  const bool saturates = d.take("satfinite");
  const Type to = d.take_type(), from = d.take_type();
  d.in.numbers[kFrom] = encode(from);
  d.in.numbers[kTo] = encode(to);
  if (to.kind == 't') {
    if (from != Type{'f', 32} || saturates) d.refuse("to tf32 in this way");
    d.in.execute = to_tf32;
  } else if (to.kind == '4' || to.kind == '5') {
    if (!saturates) d.refuse("8-bit floats saturate");
    d.in.execute = to.kind == '4' ? pack_8bit<'4'> : pack_8bit<'5'>;
  } else if (from.kind == '4' || from.kind == '5') {
    if (to != Type{'f', 32, true}) d.refuse("8-bit floats become f16x2");
    d.in.execute = from.kind == '4' ? unpack_8bit<'4'> : unpack_8bit<'5'>;
  } else if (to.is_pair) {
    if (from != Type{'f', 32} || saturates) d.refuse("pairs are made of two f32");
    d.in.execute = to.kind == 'B' ? pack_halves<Bfloat> : pack_halves<Half>;
  } else {
    if (saturates || from.is_pair) d.refuse("not with these types");
    d.in.execute = d.in.numbers[kFlags] == 0 ? fast_conversion(d.in, from, to) : nullptr;
    if (d.in.execute == nullptr) d.in.execute = convert;
  }
}

}  // namespace wide::ptx
