// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// rcp sqrt rsqrt ex2 lg2 sin cos tanh. Computed in double and rounded once: exact where PTX asks
// for it, and within the stated error where it says approx.
#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kFlushes, kRoundMode };

template <class T, class Op>
void apply(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  const bool flushes = s.in.numbers[kFlushes] != 0;
  const int mode = static_cast<int>(s.in.numbers[kRoundMode]);
  for_lanes(s.mask, [&](int l) {
    T value = F::value(a[l]);
    if constexpr (std::is_same_v<T, float>) value = flushes ? flush(value) : value;
    const double exact = Op()(static_cast<double>(value));
    const Rounding rounding(mode);
    volatile double source = exact;
    volatile T rounded = static_cast<T>(source);
    T out = rounded;
    if constexpr (std::is_same_v<T, float>) out = canonical(flushes ? flush(out) : out);
    d[l] = F::word(out);
  });
}

struct Reciprocal {
  double operator()(double x) const { return 1 / x; }
};
struct Root {
  double operator()(double x) const { return std::sqrt(x); }
};
struct ReciprocalRoot {
  double operator()(double x) const { return 1 / std::sqrt(x); }
};
struct Exp2 {
  double operator()(double x) const { return std::exp2(x); }
};
struct Log2 {
  double operator()(double x) const { return std::log2(x); }
};
struct Sine {
  double operator()(double x) const { return std::sin(x); }
};
struct Cosine {
  double operator()(double x) const { return std::cos(x); }
};
struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
};

/// ex2 and tanh of halves, single or in pairs.
template <class T, class Op>
void apply_half(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t* a = s.source<uint32_t>(1);
  const int bits = static_cast<int>(s.in.numbers[2]);
  for_lanes(s.mask, [&](int l) {
    uint32_t out = 0;
    for (int shift = 0; shift < bits; shift += 16) {
      const double value = Op()(static_cast<double>(to_float(Format<T>::value(a[l] >> shift))));
      out |= half_word<T>(value) << shift;
    }
    d[l] = out;
  });
}

template <class Op>
void choose(Decoder& d, Type type) {
  d.in.numbers[2] = type.bits;
  if (type == Type{'f', 32}) d.in.execute = apply<float, Op>;
  if (type == Type{'f', 64}) d.in.execute = apply<double, Op>;
  if (type == Type{'f', 16} || type == Type{'f', 32, true}) d.in.execute = apply_half<Half, Op>;
  if (type.kind == 'B') d.in.execute = apply_half<Bfloat, Op>;
}

}  // namespace

void decode_special(Decoder& d) {
  const std::string_view rounding = d.take_one({"approx", "rn", "rz", "rm", "rp"});
  d.in.numbers[kRoundMode] = rounding == "rz"   ? FE_TOWARDZERO
                             : rounding == "rm" ? FE_DOWNWARD
                             : rounding == "rp" ? FE_UPWARD
                                                : FE_TONEAREST;
  d.in.numbers[kFlushes] = d.take("ftz");
  const Type type = d.take_type();
  d.in.kind = InstructionClass::special;
  d.require_arguments(2, 2);
  const std::string& op = d.opcode();
  if (op == "rcp") choose<Reciprocal>(d, type);
  if (op == "sqrt") choose<Root>(d, type);
  if (op == "rsqrt") choose<ReciprocalRoot>(d, type);
  if (op == "ex2") choose<Exp2>(d, type);
  if (op == "lg2") choose<Log2>(d, type);
  if (op == "sin") choose<Sine>(d, type);
  if (op == "cos") choose<Cosine>(d, type);
  if (op == "tanh") choose<Tanh>(d, type);
}

}  // namespace wide::ptx
