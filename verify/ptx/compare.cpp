// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// setp set selp slct testp.
#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"

namespace wide::ptx {

namespace {

enum Note : size_t { kRelation, kCombine, kIsFloat, kFlushes };
enum Relation : int64_t { kEq, kNe, kLt, kLe, kGt, kGe, kAlways, kNever };
constexpr int64_t kUnordered = 8;  // true where an operand is NaN
enum Combine : int64_t { kNone, kAnd, kOr, kXor };

template <class V>
bool holds(int64_t relation, V a, V b) {
  switch (relation) {
    case kEq:
      return a == b;
    case kNe:
      return a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
    default:
      return relation == kAlways;
  }
}

/// Values compare as what they are; halves as floats.
template <class T>
auto comparable(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T, int64_t kRel>
simt::LaneMask compared(const Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  simt::LaneMask set = 0;
  const auto one = [&](int l) {
    const auto x = comparable(F::value(a[l])), y = comparable(F::value(b[l]));
    return simt::LaneMask{holds(kRel, x, y)} << l;
  };
  for_lanes(s.mask, [&](int l) { set |= one(l); });
  return set;
}

template <class T>
simt::LaneMask compared_float(const Step& s) {
  using F = Format<T>;
  using W = typename F::Word;
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  const int64_t relation = s.in.numbers[kRelation];
  simt::LaneMask set = 0;
  for_lanes(s.mask, [&](int l) {
    auto x = comparable(F::value(a[l])), y = comparable(F::value(b[l]));
    if constexpr (std::is_same_v<T, float>) {
      if (s.in.numbers[kFlushes] != 0) x = flush(x), y = flush(y);
    }
    const bool has_nan = std::isnan(x) || std::isnan(y);
    const bool is_true = has_nan ? relation >= kUnordered : holds(relation % kUnordered, x, y);
    set |= simt::LaneMask{is_true} << l;
  });
  return set;
}

void write_predicates(Step& s, simt::LaneMask set) {
  const int64_t combine = s.in.numbers[kCombine];
  simt::LaneMask other = ~set;
  if (combine != kNone) {
    const simt::LaneMask third = s.predicate(3);
    const auto combined = [&](simt::LaneMask x) {
      return combine == kAnd ? x & third : combine == kOr ? x | third : x ^ third;
    };
    set = combined(set);
    other = combined(other);
  }
  const Argument& target = s.in.arguments[0];
  if (target.parts[0].number >= 0)
    s.each([&, d = s.result<uint32_t>()](int l) { d[l] = set >> l & 1; });
  if (target.has_second)
    s.each([&, d = s.lanes<uint32_t>(target.second)](int l) { d[l] = other >> l & 1; });
}

template <class T, int64_t kRel>
void set_predicate(Step& s) {
  write_predicates(s, compared<T, kRel>(s));
}
template <class T>
void set_predicate_float(Step& s) {
  write_predicates(s, compared_float<T>(s));
}

template <class T>
Execute choose_relation(int64_t relation) {
  switch (relation) {
    case kEq:
      return set_predicate<T, kEq>;
    case kNe:
      return set_predicate<T, kNe>;
    case kLt:
      return set_predicate<T, kLt>;
    case kLe:
      return set_predicate<T, kLe>;
    case kGt:
      return set_predicate<T, kGt>;
    default:
      return set_predicate<T, kGe>;
  }
}

/// set: all bits, or 1.0 for a float result.
template <class T>
void set_value(Step& s) {
  simt::LaneMask set;
  if constexpr (std::is_floating_point_v<T>) {
    set = compared_float<T>(s);
  } else {
    set = 0;
    for_lanes(s.mask, [&](int l) {
      const auto x = Format<T>::value(s.source<typename Format<T>::Word>(1)[l]);
      const auto y = Format<T>::value(s.source<typename Format<T>::Word>(2)[l]);
      set |= simt::LaneMask{holds(s.in.numbers[kRelation], x, y)} << l;
    });
  }
  const bool is_float = s.in.numbers[kIsFloat] != 0;
  uint32_t* d = s.result<uint32_t>();
  s.each([=](int l) {
    d[l] = (set >> l & 1) == 0 ? 0 : is_float ? std::bit_cast<uint32_t>(1.0f) : 0xffffffffu;
  });
}

template <class W>
void select(Step& s) {
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  const simt::LaneMask chosen = s.predicate(3);
  s.each([=](int l) { d[l] = (chosen >> l & 1) != 0 ? a[l] : b[l]; });
}

template <class W, bool kFloat>
void select_by_sign(Step& s) {
  W* d = s.result<W>();
  const W *a = s.source<W>(1), *b = s.source<W>(2);
  const uint32_t* c = s.source<uint32_t>(3);
  s.each([=](int l) {
    const bool is_first =
        kFloat ? std::bit_cast<float>(c[l]) >= 0 : static_cast<int32_t>(c[l]) >= 0;
    d[l] = is_first ? a[l] : b[l];
  });
}

int64_t take_relation(Decoder& d, Type type) {
  const std::string_view word =
      d.take_one({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu",
                  "leu", "gtu", "geu", "num", "nan"});
  if (word.empty()) d.refuse("relation is not known");
  const bool is_unordered = word.size() == 3;
  if (is_unordered && type.kind != 'f' && type.kind != 'B') d.refuse("unordered integers");
  if (word == "num") return kAlways;
  if (word == "nan") return kNever + kUnordered;
  const std::string_view plain = word.substr(0, 2);
  int64_t relation = plain == "eq"                    ? kEq
                     : plain == "ne"                  ? kNe
                     : plain == "lt" || plain == "lo" ? kLt
                     : plain == "le" || plain == "ls" ? kLe
                     : plain == "gt" || plain == "hi" ? kGt
                                                      : kGe;
  return relation + (is_unordered ? kUnordered : 0);
}

Execute choose_setp(Type type, int64_t relation) {
  if (type.kind == 'B') return set_predicate_float<Bfloat>;
  if (type.kind == 'f') {
    return type.bits == 16   ? set_predicate_float<Half>
           : type.bits == 32 ? set_predicate_float<float>
                             : set_predicate_float<double>;
  }
  const bool is_signed = type.kind == 's';
  switch (type.bits) {
    case 16:
      return is_signed ? choose_relation<int16_t>(relation) : choose_relation<uint16_t>(relation);
    case 32:
      return is_signed ? choose_relation<int32_t>(relation) : choose_relation<uint32_t>(relation);
    case 64:
      return is_signed ? choose_relation<int64_t>(relation) : choose_relation<uint64_t>(relation);
    default:
      return nullptr;
  }
}

void decode_setp(Decoder& d) {
  d.in.numbers[kFlushes] = d.take("ftz");
  const std::string_view combine = d.take_one({"and", "or", "xor"});
  const Type type = d.take_type();
  if (type.is_pair) d.refuse("packed comparison");
  d.in.numbers[kRelation] = take_relation(d, type);
  d.in.numbers[kCombine] = combine == "and"   ? kAnd
                           : combine == "or"  ? kOr
                           : combine == "xor" ? kXor
                                              : kNone;
  d.require_arguments(combine.empty() ? 3 : 4, combine.empty() ? 3 : 4);
  d.in.execute = choose_setp(type, d.in.numbers[kRelation]);
}

void decode_set(Decoder& d) {
  d.in.numbers[kFlushes] = d.take("ftz");
  const Type result = d.take_type(), type = d.take_type();
  d.in.numbers[kRelation] = take_relation(d, type);
  d.in.numbers[kIsFloat] = result == Type{'f', 32};
  if (result.bits != 32 || result.is_pair) d.refuse("result of this type");
  if (type == Type{'f', 32}) d.in.execute = set_value<float>;
  if (type == Type{'s', 32}) d.in.execute = set_value<int32_t>;
  if (type == Type{'u', 32} || type == Type{'b', 32}) d.in.execute = set_value<uint32_t>;
}

}  // namespace

void decode_compare(Decoder& d) {
  const std::string& op = d.opcode();
  d.in.kind = simt::InstructionClass::integer;
  if (op == "setp") return decode_setp(d);
  if (op == "set") return decode_set(d);
  if (op == "testp") d.refuse("not executed");
  d.ignore({"ftz"});
  const Type type = d.take_type();
  d.require_arguments(4, 4);
  if (op == "selp") {
    d.in.kind = simt::InstructionClass::move;
    d.in.execute = type.bits == 64 ? select<uint64_t> : select<uint32_t>;
    return;
  }
  const Type by = d.take_type();  // slct
  const bool is_float = by.kind == 'f';
  if (type.bits == 64)
    d.in.execute = is_float ? select_by_sign<uint64_t, true> : select_by_sign<uint64_t, false>;
  if (type.bits == 32)
    d.in.execute = is_float ? select_by_sign<uint32_t, true> : select_by_sign<uint32_t, false>;
}

}  // namespace wide::ptx
