// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bits and bytes: and or xor not shl shr shf lop3 prmt bfe bfi bfind bmsk brev clz popc dp4a.
#include <algorithm>

#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;

template <class W, class Op>
void binary(Step& s) {
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  s.each([=](int l) { d[l] = Op()(a[l], b[l]); });
}

struct And {
  template <class W>
  W operator()(W a, W b) const {
    return a & b;
  }
};
struct Or {
  template <class W>
  W operator()(W a, W b) const {
    return a | b;
  }
};
struct Xor {
  template <class W>
  W operator()(W a, W b) const {
    return a ^ b;
  }
};

template <class Op>
Execute choose_binary(Type type) {
  return type.bits == 64 ? binary<uint64_t, Op> : binary<uint32_t, Op>;
}

/// Predicates may come negated.
template <class Op>
void predicates(Step& s) {
  const simt::LaneMask out = Op()(s.predicate(1), s.predicate(2));
  uint32_t* d = s.result<uint32_t>();
  s.each([=](int l) { d[l] = out >> l & 1; });
}

template <int kBits>
void invert(Step& s) {
  using W = std::conditional_t<kBits == 64, uint64_t, uint32_t>;
  constexpr W kMask = kBits == 1 ? 1 : kBits == 16 ? 0xffff : static_cast<W>(~W{0});
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  s.each([=](int l) { d[l] = ~a[l] & kMask; });
}

/// Amounts beyond the width shift everything out.
template <class T, bool kLeft>
void shift(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  constexpr uint32_t kBits = 8 * sizeof(T);
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  const uint32_t* by = s.source<uint32_t>(2);
  s.each([=](int l) {
    const T value = F::value(a[l]);
    if constexpr (kLeft) {
      d[l] = by[l] >= kBits ? 0 : F::word(static_cast<T>(W{a[l]} << by[l]));
    } else {
      const T rest = static_cast<T>(value >> (kBits - 1) >> (std::is_signed_v<T> ? 0 : 1));
      d[l] = F::word(by[l] >= kBits ? rest : static_cast<T>(value >> by[l]));
    }
  });
}

template <bool kLeft, bool kWrap>
void funnel(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t *low = s.source<uint32_t>(1), *high = s.source<uint32_t>(2),
                 *by = s.source<uint32_t>(3);
  s.each([=](int l) {
    const uint64_t both = uint64_t{high[l]} << 32 | low[l];
    const uint32_t n = kWrap ? by[l] & 31 : std::min(by[l], 32u);
    d[l] = static_cast<uint32_t>(kLeft ? both << n >> 32 : both >> n);
  });
}

void lookup(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t *a = s.source<uint32_t>(1), *b = s.source<uint32_t>(2), *c = s.source<uint32_t>(3);
  const auto table = static_cast<uint32_t>(s.uniform(4, "lop3's table"));
  s.each([=](int l) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t chosen = 0 - (table >> i & 1);
      out |= chosen & ((i & 4) != 0 ? a[l] : ~a[l]) & ((i & 2) != 0 ? b[l] : ~b[l]) &
             ((i & 1) != 0 ? c[l] : ~c[l]);
    }
    d[l] = out;
  });
}

void permute(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t *a = s.source<uint32_t>(1), *b = s.source<uint32_t>(2), *c = s.source<uint32_t>(3);
  s.each([=](int l) {
    const uint64_t both = uint64_t{b[l]} << 32 | a[l];
    uint32_t out = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t selector = c[l] >> (4 * i) & 15;
      auto byte = static_cast<uint32_t>(both >> (8 * (selector & 7)) & 255);
      if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;  // its sign, eight times
      out |= byte << (8 * i);
    }
    d[l] = out;
  });
}

template <class T>
void extract_field(Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  constexpr int kBits = 8 * sizeof(T);
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  for_lanes(s.mask, [&](int l) {
    const int position = static_cast<int>(s.value(2, l) & 255),
              length = static_cast<int>(s.value(3, l) & 255);
    const W field = position >= kBits ? 0 : a[l] >> position;
    const W mask = length >= kBits ? static_cast<W>(~W{0}) : (W{1} << length) - 1;
    W out = field & mask;
    if constexpr (std::is_signed_v<T>) {
      const int top = std::min(position + length - 1, kBits - 1);
      if (length > 0 && (a[l] >> top & 1) != 0)
        out |= ~(position + length > kBits ? mask >> (position + length - kBits) : mask);
    }
    d[l] = out;
  });
}

template <class W>
void insert_field(Step& s) {
  constexpr int kBits = 8 * sizeof(W);
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  for_lanes(s.mask, [&](int l) {
    const int position = static_cast<int>(s.value(3, l) & 255),
              length = static_cast<int>(s.value(4, l) & 255);
    const W mask = length >= kBits ? static_cast<W>(~W{0}) : (W{1} << length) - 1;
    d[l] = position >= kBits
               ? b[l]
               : static_cast<W>((b[l] & ~(mask << position)) | (a[l] & mask) << position);
  });
}

template <class T>
void find_bit(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const bool is_amount = s.in.numbers[0] != 0;
  for_lanes(s.mask, [&](int l) {
    T value = Format<T>::value(s.source<typename Format<T>::Word>(1)[l]);
    if constexpr (std::is_signed_v<T>) value = value < 0 ? static_cast<T>(~value) : value;
    const int high =
        static_cast<int>(std::bit_width(static_cast<std::make_unsigned_t<T>>(value))) - 1;
    const int top = 8 * static_cast<int>(sizeof(T)) - 1;
    d[l] = static_cast<uint32_t>(high < 0 ? -1 : is_amount ? top - high : high);
  });
}

void make_mask(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const bool wraps = s.in.numbers[0] != 0;
  for_lanes(s.mask, [&](int l) {
    const auto clip = [&](uint64_t v) { return wraps ? v & 31 : std::min<uint64_t>(v, 32); };
    const uint64_t position = clip(s.value(1, l)), length = clip(s.value(2, l));
    d[l] = position > 31 ? 0 : static_cast<uint32_t>(((uint64_t{1} << length) - 1) << position);
  });
}

template <class W>
void reverse(Step& s) {
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  for_lanes(s.mask, [&](int l) {
    W out = 0;
    for (size_t i = 0; i < 8 * sizeof(W); ++i) out |= (a[l] >> i & 1) << (8 * sizeof(W) - 1 - i);
    d[l] = out;
  });
}

template <class W, bool kLeadingZeros>
void count(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const W* a = s.source<W>(1);
  s.each([=](int l) {
    d[l] = static_cast<uint32_t>(kLeadingZeros ? std::countl_zero(a[l]) : std::popcount(a[l]));
  });
}

void decode_shift(Decoder& d, Type type) {
  const bool is_left = d.opcode() == "shl", is_signed = type.kind == 's';
  if (type.bits == 16) {
    d.in.execute = is_left     ? shift<uint16_t, true>
                   : is_signed ? shift<int16_t, false>
                               : shift<uint16_t, false>;
  } else if (type.bits == 32) {
    d.in.execute = is_left     ? shift<uint32_t, true>
                   : is_signed ? shift<int32_t, false>
                               : shift<uint32_t, false>;
  } else {
    d.in.execute = is_left     ? shift<uint64_t, true>
                   : is_signed ? shift<int64_t, false>
                               : shift<uint64_t, false>;
  }
}

void decode_funnel(Decoder& d) {
  const bool is_left = d.take("l");
  if (!is_left && !d.take("r")) d.refuse("direction is missing");
  const bool wraps = d.take("wrap");
  d.take("clamp");
  d.in.execute = is_left ? (wraps ? funnel<true, true> : funnel<true, false>)
                         : (wraps ? funnel<false, true> : funnel<false, false>);
}

/// c + the products of four pairs of bytes.
template <class A, class B>
void dot(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const uint32_t *a = s.source<uint32_t>(1), *b = s.source<uint32_t>(2), *c = s.source<uint32_t>(3);
  s.each([=](int l) {
    uint32_t sum = c[l];
    for (int i = 0; i < 32; i += 8) {
      const int32_t product = static_cast<A>(a[l] >> i) * static_cast<B>(b[l] >> i);
      sum += static_cast<uint32_t>(product);
    }
    d[l] = sum;
  });
}

void decode_dot(Decoder& d) {
  const Type a = d.take_type(), b = d.take_type();
  if (a.bits != 32 || b.bits != 32) d.refuse("bytes of this type");
  d.require_arguments(4, 4);
  const bool is_signed = a.kind == 's';
  d.in.execute = b.kind == 's' ? (is_signed ? dot<int8_t, int8_t> : dot<uint8_t, int8_t>)
                               : (is_signed ? dot<int8_t, uint8_t> : dot<uint8_t, uint8_t>);
}

void decode_field(Decoder& d, Type type) {
  const bool is_wide = type.bits == 64, is_signed = type.kind == 's';
  const std::string& op = d.opcode();
  if (op == "bfi") d.in.execute = is_wide ? insert_field<uint64_t> : insert_field<uint32_t>;
  if (op == "bfe") {
    d.in.execute = is_wide ? (is_signed ? extract_field<int64_t> : extract_field<uint64_t>)
                           : (is_signed ? extract_field<int32_t> : extract_field<uint32_t>);
  }
  if (op == "bfind") {
    d.in.numbers[0] = d.take("shiftamt");
    d.in.execute = is_wide ? (is_signed ? find_bit<int64_t> : find_bit<uint64_t>)
                           : (is_signed ? find_bit<int32_t> : find_bit<uint32_t>);
  }
  if (op == "brev") d.in.execute = is_wide ? reverse<uint64_t> : reverse<uint32_t>;
  if (op == "clz") d.in.execute = is_wide ? count<uint64_t, true> : count<uint32_t, true>;
  if (op == "popc") d.in.execute = is_wide ? count<uint64_t, false> : count<uint32_t, false>;
}

}  // namespace

void decode_bits(Decoder& d) {
  const std::string& op = d.opcode();
  d.in.kind = InstructionClass::integer;
  if (op == "bmsk") {
    d.in.numbers[0] = d.take("wrap");
    d.take("clamp");
  }
  if (op == "dp4a") return decode_dot(d);
  if (op == "shf") decode_funnel(d);
  const Type type = d.take_type();
  if (op == "and" || op == "or" || op == "xor") {
    const bool is_predicate = type.kind == 'p';
    d.require_arguments(3, 3);
    if (op == "and") d.in.execute = is_predicate ? predicates<And> : choose_binary<And>(type);
    if (op == "or") d.in.execute = is_predicate ? predicates<Or> : choose_binary<Or>(type);
    if (op == "xor") d.in.execute = is_predicate ? predicates<Xor> : choose_binary<Xor>(type);
  }
  if (op == "not") {
    d.in.execute = type.bits == 1    ? invert<1>
                   : type.bits == 16 ? invert<16>
                   : type.bits == 32 ? invert<32>
                                     : invert<64>;
  }
  if (op == "shl" || op == "shr") decode_shift(d, type);
  if (op == "lop3") d.in.execute = lookup;
  if (op == "prmt") d.in.execute = permute;
  if (op == "bmsk") d.in.execute = make_mask;
  decode_field(d, type);
}

}  // namespace wide::ptx
