// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// add sub mul mad fma div rem min max abs neg copysign: integers, fp32, fp64, and halves. Rounding
// is the host's; modes other than nearest, flushing and saturation take a slower function.
#include <algorithm>
#include <limits>

#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;

/// Whether a result that is no number is the canonical one: of fp32, but for abs, neg and copysign,
/// which only touch the sign.
template <class T, class Op>
constexpr bool kIsCanonical = false;

template <class Op, class T, class... Rest>
T compute(T a, Rest... rest) {
  const T value = Op()(a, rest...);
  if constexpr (kIsCanonical<T, Op>) {
    return canonical(value);
  } else {
    return value;
  }
}

template <class T, class Op>
void binary(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  s.each([=](int l) { d[l] = F::word(compute<Op>(F::value(a[l]), F::value(b[l]))); });
}

template <class T, class Op>
void unary(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  s.each([=](int l) { d[l] = F::word(compute<Op>(F::value(a[l]))); });
}

template <class T, class Op>
void ternary(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2), *c = s.source<W>(3);
  s.each(
      [=](int l) { d[l] = F::word(compute<Op>(F::value(a[l]), F::value(b[l]), F::value(c[l]))); });
}

// Integers wrap: arithmetic is unsigned.
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    } else {
      return a - b;
    }
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    using Twice = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Twice>(a) * static_cast<Twice>(b)) >> (8 * sizeof(T)));
  }
};
/// PTX leaves division by zero open; all bits set is what the hardware gives.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
      }
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return minimum(a, b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return maximum(a, b);
  }
};
struct MinNan {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : minimum(a, b);
  }
};
struct MaxNan {
  template <class T>
  T operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : maximum(a, b);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return a < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a;
    } else {
      return std::fabs(a);
    }
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    } else {
      return -a;
    }
  }
};
struct Mad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(Mul()(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(MulHigh()(a, b), c);
  }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(c, a < b ? Sub()(b, a) : Sub()(a, b));
  }
};
/// Copies the sign of a to b.
struct Copysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

/// "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 delivers NaN, otherwise it delivers
/// 0": the reciprocal of b is flushed before a is multiplied by it.
struct DivApproximate {
  float operator()(float a, float b) const {
    const float size = std::fabs(b);
    const bool is_flushed = size > 0x1p126f && size < std::numeric_limits<float>::infinity();
    return is_flushed ? a * std::copysign(0.0f, b) : a / b;
  }
};

template <class... Ops>
struct AnyOf {
  template <class Op>
  static constexpr bool kHas = (std::is_same_v<Op, Ops> || ...);
};
template <class Op>
constexpr bool kIsCanonical<float, Op> =
    AnyOf<Add, Sub, Mul, Fma, Div, DivApproximate, Min, Max, MinNan, MaxNan>::kHas<Op>;

/// mul.wide and mad.wide: products of twice the width.
template <class T, bool kAdds>
void multiply_wide(Step& s) {
  using W = typename Format<T>::Word;
  using Twice = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  const bool is_wide = s.in.arguments[0].parts[0].is_wide;
  for_lanes(s.mask, [&](int l) {
    const auto product = static_cast<uint64_t>(static_cast<Twice>(Format<T>::value(a[l])) *
                                               static_cast<Twice>(Format<T>::value(b[l])));
    uint64_t sum = product;
    if constexpr (kAdds) sum += is_wide ? s.source<uint64_t>(3)[l] : s.source<uint32_t>(3)[l];
    s.set(s.in.arguments[0].parts[0], l, sum);
  });
}

// ---- floating point with a rounding mode, flushing of subnormals or saturation

enum Note : size_t { kRoundMode, kFlags };
constexpr int64_t kFlush = 1, kSaturate = 2, kRelu = 4;

template <class T>
T finish_float(T value, int64_t flags) {
  if constexpr (std::is_same_v<T, float>) {
    if ((flags & kFlush) != 0) value = flush(value);
  }
  if ((flags & kSaturate) != 0) value = std::isnan(value) ? T{0} : std::clamp(value, T{0}, T{1});
  if ((flags & kRelu) != 0) value = value < T{0} ? T{0} : value;
  return value;
}

template <class T, class Op, int kSources>
void careful(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  const int64_t flags = s.in.numbers[kFlags];
  W* d = s.result<W>();
  const auto get = [&](size_t i, int l) {
    T value = F::value(s.source<W>(i)[l]);
    if constexpr (std::is_same_v<T, float>) {
      if ((flags & kFlush) != 0) value = flush(value);
    }
    return value;
  };
  const Rounding rounding(static_cast<int>(s.in.numbers[kRoundMode]));
  for_lanes(s.mask, [&](int l) {
    volatile T a = get(1, l);  // keeps the compiler from computing ahead of the rounding mode
    volatile T value{};
    if constexpr (kSources == 1) value = compute<Op>(T{a});
    if constexpr (kSources == 2) value = compute<Op>(T{a}, get(2, l));
    if constexpr (kSources == 3) value = compute<Op>(T{a}, get(2, l), get(3, l));
    d[l] = F::word(finish_float(T{value}, flags));
  });
}

/// Halves: computed in double, where neither a product nor a fused sum of two halves loses a bit
/// that the one rounding at the end could miss.
template <class T, class Op, int kSources>
void half(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const int64_t flags = s.in.numbers[kFlags];
  const bool is_pair = s.in.numbers[2] != 0;
  for_lanes(s.mask, [&](int l) {
    uint32_t out = 0;
    for (int shift = 0; shift < (is_pair ? 32 : 16); shift += 16) {
      const auto get = [&](size_t i) {
        return static_cast<double>(to_float(Format<T>::value(s.source<uint32_t>(i)[l] >> shift)));
      };
      double value = 0;
      if constexpr (kSources == 1) value = Op()(get(1));
      if constexpr (kSources == 2) value = Op()(get(1), get(2));
      if constexpr (kSources == 3) value = Op()(get(1), get(2), get(3));
      value = finish_float(value, flags);
      out |= half_word<T>(value) << shift;
    }
    d[l] = out;
  });
}

// ---- choosing the function

template <class Op>
Execute integer_binary(Type type) {
  const bool is_signed = type.kind == 's';
  switch (type.bits) {
    case 16:
      return is_signed ? binary<int16_t, Op> : binary<uint16_t, Op>;
    case 32:
      return is_signed ? binary<int32_t, Op> : binary<uint32_t, Op>;
    case 64:
      return is_signed ? binary<int64_t, Op> : binary<uint64_t, Op>;
    default:
      return nullptr;
  }
}
template <class Op>
Execute integer_ternary(Type type) {
  const bool is_signed = type.kind == 's';
  switch (type.bits) {
    case 16:
      return is_signed ? ternary<int16_t, Op> : ternary<uint16_t, Op>;
    case 32:
      return is_signed ? ternary<int32_t, Op> : ternary<uint32_t, Op>;
    case 64:
      return is_signed ? ternary<int64_t, Op> : ternary<uint64_t, Op>;
    default:
      return nullptr;
  }
}
template <bool kAdds>
Execute wide_product(Type type) {
  const bool is_signed = type.kind == 's';
  if (type.bits == 16)
    return is_signed ? multiply_wide<int16_t, kAdds> : multiply_wide<uint16_t, kAdds>;
  if (type.bits == 32)
    return is_signed ? multiply_wide<int32_t, kAdds> : multiply_wide<uint32_t, kAdds>;
  return nullptr;
}

bool is_integer(Type type) {
  return type.kind == 's' || type.kind == 'u';
}
bool is_half(Type type) {
  return type.kind == 'B' || (type.kind == 'f' && (type.bits == 16 || type.is_pair));
}

/// Rounding and flags of a floating instruction; whether it needs the careful function.
bool take_float_modifiers(Decoder& d) {
  const std::string_view rounding = d.take_one({"rn", "rz", "rm", "rp"});
  d.in.numbers[kRoundMode] = rounding == "rz"   ? FE_TOWARDZERO
                             : rounding == "rm" ? FE_DOWNWARD
                             : rounding == "rp" ? FE_UPWARD
                                                : FE_TONEAREST;
  int64_t flags = 0;
  if (d.take("ftz")) flags |= kFlush;
  if (d.take("sat")) flags |= kSaturate;
  if (d.take("relu")) flags |= kRelu;
  d.in.numbers[kFlags] = flags;
  return flags != 0 || d.in.numbers[kRoundMode] != FE_TONEAREST;
}

template <class Op, int kSources>
void choose_float(Decoder& d, Type type) {
  const bool is_careful = take_float_modifiers(d);
  d.in.kind = is_half(type)     ? InstructionClass::half
              : type.bits == 64 ? InstructionClass::fp64
                                : InstructionClass::fp32;
  d.in.numbers[2] = type.is_pair;
  if (is_half(type)) {
    d.in.execute = type.kind == 'B' ? half<Bfloat, Op, kSources> : half<Half, Op, kSources>;
    return;
  }
  if (is_careful) {
    d.in.execute = type.bits == 64 ? careful<double, Op, kSources> : careful<float, Op, kSources>;
    return;
  }
  const bool is_double = type.bits == 64;
  if constexpr (kSources == 1) d.in.execute = is_double ? unary<double, Op> : unary<float, Op>;
  if constexpr (kSources == 2) d.in.execute = is_double ? binary<double, Op> : binary<float, Op>;
  if constexpr (kSources == 3) d.in.execute = is_double ? ternary<double, Op> : ternary<float, Op>;
}

void choose_approximate_quotient(Decoder& d) {
  d.in.kind = InstructionClass::fp32;
  d.in.execute =
      take_float_modifiers(d) ? careful<float, DivApproximate, 2> : binary<float, DivApproximate>;
}

void decode_product(Decoder& d, Type type) {
  const bool adds = d.opcode() == "mad" || d.opcode() == "mad24";
  d.take("lo");
  if (d.take("wide")) {
    d.in.execute = adds ? wide_product<true>(type) : wide_product<false>(type);
  } else if (d.take("hi")) {
    d.in.execute = adds ? integer_ternary<MadHigh>(type) : integer_binary<MulHigh>(type);
  } else {
    d.in.execute = adds ? integer_ternary<Mad>(type) : integer_binary<Mul>(type);
  }
}

bool decode_integer(Decoder& d, Type type) {
  const std::string& op = d.opcode();
  if (op == "add") d.in.execute = integer_binary<Add>(type);
  if (op == "sub") d.in.execute = integer_binary<Sub>(type);
  if (op == "div") d.in.execute = integer_binary<Div>(type);
  if (op == "rem") d.in.execute = integer_binary<Rem>(type);
  if (op == "min") d.in.execute = integer_binary<Min>(type);
  if (op == "max") d.in.execute = integer_binary<Max>(type);
  if (op == "sad") d.in.execute = integer_ternary<Sad>(type);
  if (op == "mul" || op == "mad") decode_product(d, type);
  if (op == "abs" || op == "neg") {
    const bool is_abs = op == "abs";
    if (type == Type{'s', 16}) d.in.execute = is_abs ? unary<int16_t, Abs> : unary<int16_t, Neg>;
    if (type == Type{'s', 32}) d.in.execute = is_abs ? unary<int32_t, Abs> : unary<int32_t, Neg>;
    if (type == Type{'s', 64}) d.in.execute = is_abs ? unary<int64_t, Abs> : unary<int64_t, Neg>;
  }
  return d.in.execute != nullptr;
}

void decode_float(Decoder& d, Type type) {
  const std::string& op = d.opcode();
  if (op == "add") choose_float<Add, 2>(d, type);
  if (op == "sub") choose_float<Sub, 2>(d, type);
  if (op == "mul") choose_float<Mul, 2>(d, type);
  if (op == "fma" || op == "mad") choose_float<Fma, 3>(d, type);
  if (op == "div") {
    d.ignore({"full"});  // exact division is within its error
    if (d.take("approx")) {
      if (type != Type{'f', 32}) d.refuse("an approximate quotient of this type");
      choose_approximate_quotient(d);
    } else {
      choose_float<Div, 2>(d, type);
    }
  }
  if (op == "min" || op == "max") {
    const bool is_min = op == "min";
    if (d.take("NaN")) {
      if (type.bits == 64) d.refuse("NaN-propagating minimum of this type");
      if (is_min) choose_float<MinNan, 2>(d, type);
      if (!is_min) choose_float<MaxNan, 2>(d, type);
    } else {
      if (is_min) choose_float<Min, 2>(d, type);
      if (!is_min) choose_float<Max, 2>(d, type);
    }
  }
  if (op == "abs") choose_float<Abs, 1>(d, type);
  if (op == "neg") choose_float<Neg, 1>(d, type);
  if (op == "copysign") choose_float<Copysign, 2>(d, type);
}

}  // namespace

void decode_arithmetic(Decoder& d) {
  const Type type = d.take_type();
  d.in.kind = InstructionClass::integer;
  d.require_arguments(2, 4);
  if (is_integer(type)) {
    decode_integer(d, type);
  } else {
    decode_float(d, type);
  }
}

}  // namespace wide::ptx
