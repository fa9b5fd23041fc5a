// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// PTX's integer instructions, line by line, against what the PTX ISA says they compute.
#include <algorithm>
#include <bit>

#include "verify/support/ptx_lanes.hpp"

namespace wide::test {

namespace {

using i16 = int16_t;
using u16 = uint16_t;
using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

/// Bits of `a` under `position` and `length`, each of which only its low byte counts.
u32 field(u32 a, u32 position, u32 length) {
  position &= 255, length &= 255;
  const u64 mask = length >= 32 ? 0xffffffff : (u64{1} << length) - 1;
  return position >= 32 ? 0 : static_cast<u32>(u64{a} >> position & mask);
}

}  // namespace

TEST_CASE("ptx: sums and products of integers") {
  check_line<u32>("add.s32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return a + b; });
  check_line<u64>("add.u64 %l, %al, %bl;", [](u64 a, u64 b, u64) { return a + b; });
  check_line<u16>("add.s16 %h, %ah, %bh;", [](u16 a, u16 b, u16) { return u16(a + b); });
  check_line<u32>("sub.u32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return a - b; });
  check_line<u64>("sub.s64 %l, %al, %bl;", [](u64 a, u64 b, u64) { return a - b; });
  check_line<u32>("mul.lo.s32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return a * b; });
  check_line<u64>("mul.lo.u64 %l, %al, %bl;", [](u64 a, u64 b, u64) { return a * b; });
  check_line<i32>("mul.hi.s32 %w, %aw, %bw;",
                  [](i32 a, i32 b, i32) { return i32(i64{a} * b >> 32); });
  check_line<u32>("mul.hi.u32 %w, %aw, %bw;",
                  [](u32 a, u32 b, u32) { return u32(u64{a} * b >> 32); });
  check_line<i64>("mul.hi.s64 %l, %al, %bl;",
                  [](i64 a, i64 b, i64) { return i64(i128{a} * b >> 64); });
  check_line<u64>("mul.hi.u64 %l, %al, %bl;",
                  [](u64 a, u64 b, u64) { return u64(u128{a} * b >> 64); });
  check_line<i32>("mul.wide.s32 %l, %aw, %bw;", [](i32 a, i32 b, i32) { return i64{a} * b; });
  check_line<u32>("mul.wide.u32 %l, %aw, %bw;", [](u32 a, u32 b, u32) { return u64{a} * b; });
  check_line<i16>("mul.wide.s16 %w, %ah, %bh;", [](i16 a, i16 b, i16) { return i32{a} * b; });
  check_line<u32>("mad.lo.s32 %w, %aw, %bw, %cw;", [](u32 a, u32 b, u32 c) { return a * b + c; });
  check_line<u64>("mad.wide.u32 %l, %aw, %bw, %cl;",
                  [](u64 a, u64 b, u64 c) { return (a & 0xffffffff) * (b & 0xffffffff) + c; });
  check_line<u32>("mad.hi.u32 %w, %aw, %bw, %cw;",
                  [](u32 a, u32 b, u32 c) { return u32(u64{a} * b >> 32) + c; });
}

TEST_CASE("ptx: quotients, extremes, signs") {
  check_line<u32>("div.u32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return b ? a / b : ~0u; });
  check_line<u64>("rem.u64 %l, %al, %bl;", [](u64 a, u64 b, u64) { return b ? a % b : a; });
  check_line<i32>("max.s32 %w, %aw, %bw;", [](i32 a, i32 b, i32) { return std::max(a, b); });
  check_line<u32>("min.u32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return std::min(a, b); });
  check_line<i64>("min.s64 %l, %al, %bl;", [](i64 a, i64 b, i64) { return std::min(a, b); });
  check_line<i16>("max.s16 %h, %ah, %bh;", [](i16 a, i16 b, i16) { return std::max(a, b); });
  check_line<u32>("abs.s32 %w, %aw;", [](u32 a, u32, u32) { return i32(a) < 0 ? 0 - a : a; });
  check_line<u64>("neg.s64 %l, %al;", [](u64 a, u64, u64) { return 0 - a; });
  check_line<i32>("sad.s32 %w, %aw, %bw, %cw;", [](i32 a, i32 b, i32 c) {
    return u32(c) + u32(std::max(i64{a}, i64{b}) - std::min(i64{a}, i64{b}));
  });
}

TEST_CASE("ptx: logic and shifts") {
  check_line<u32>("and.b32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return a & b; });
  check_line<u64>("or.b64 %l, %al, %bl;", [](u64 a, u64 b, u64) { return a | b; });
  check_line<u16>("xor.b16 %h, %ah, %bh;", [](u16 a, u16 b, u16) { return u16(a ^ b); });
  check_line<u32>("and.pred %p, %ap, %bp;", [](u32 a, u32 b, u32) { return (a & b & 1) != 0; });
  check_line<u32>("not.pred %p, %ap;", [](u32 a, u32, u32) { return (a & 1) == 0; });
  check_line<u64>("not.b64 %l, %al;", [](u64 a, u64, u64) { return ~a; });
  check_line<u32>("shl.b32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return b > 31 ? 0 : a << b; });
  check_line<u32>("shr.u32 %w, %aw, %bw;", [](u32 a, u32 b, u32) { return b > 31 ? 0 : a >> b; });
  check_line<i32>("shr.s32 %w, %aw, %bw;",
                  [](i32 a, i32 b, i32) { return a >> std::min(u32(b), 31u); });
  check_line<u64>("shl.b64 %l, %al, %bw;",
                  [](u64 a, u64 b, u64) { return u32(b) > 63 ? 0 : a << u32(b); });
  check_line<i64>("shr.s64 %l, %al, %bw;",
                  [](i64 a, i64 b, i64) { return a >> std::min(u32(b), 63u); });
  check_line<u32>("shr.u16 %h, %ah, %bw;",
                  [](u32 a, u32 b, u32) { return b > 15 ? u16{0} : u16(u16(a) >> b); });
  check_line<u32>("shf.l.wrap.b32 %w, %aw, %bw, %cw;",
                  [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) << (c & 31) >> 32); });
  check_line<u32>("shf.r.wrap.b32 %w, %aw, %bw, %cw;",
                  [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> (c & 31)); });
  check_line<u32>("shf.r.clamp.b32 %w, %aw, %bw, %cw;",
                  [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> std::min(c, 32u)); });
  check_line<u32>("lop3.b32 %w, %aw, %bw, %cw, 0x96;",
                  [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  check_line<u32>("lop3.b32 %w, %aw, %bw, %cw, 0xe4;",
                  [](u32 a, u32 b, u32 c) { return (a & c) | (b & ~c); });
}

TEST_CASE("ptx: bit fields and counts") {
  check_line<u32>("bfe.u32 %w, %aw, %bw, %cw;", field);
  check_line<u32>("bfi.b32 %w, %aw, %bw, %cw, 7;", [](u32 a, u32 b, u32 c) {
    const u32 at = c & 255;
    const u64 mask = at > 31 ? 0 : u64{127} << at;
    return u32((b & ~mask) | ((at > 31 ? 0 : u64{a} << at) & mask));
  });
  check_line<u32>("brev.b32 %w, %aw;", [](u32 a, u32, u32) {
    u32 reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (a >> i & 1) << (31 - i);
    return reversed;
  });
  check_line<u32>("clz.b32 %w, %aw;", [](u32 a, u32, u32) { return u32(std::countl_zero(a)); });
  check_line<u64>("clz.b64 %w, %al;", [](u64 a, u64, u64) { return u32(std::countl_zero(a)); });
  check_line<u64>("popc.b64 %w, %al;", [](u64 a, u64, u64) { return u32(std::popcount(a)); });
  check_line<u32>("bfind.u32 %w, %aw;", [](u32 a, u32, u32) { return u32(std::bit_width(a)) - 1; });
  check_line<u32>("prmt.b32 %w, %aw, %bw, %cw;", [](u32 a, u32 b, u32 c) {
    const u64 bytes = u64{b} << 32 | a;
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 choice = c >> (4 * i) & 15;
      u32 byte = u32(bytes >> (8 * (choice & 7))) & 255;
      if (choice & 8) byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  });
}

TEST_CASE("ptx: products of bytes") {
  const auto dot = [](auto a, auto b) {
    return [=](u32 x, u32 y, u32 sum) {
      for (int i = 0; i < 4; ++i) {
        const int product = decltype(a)(x >> 8 * i) * decltype(b)(y >> 8 * i);
        sum += static_cast<u32>(product);
      }
      return sum;
    };
  };
  check_line<u32>("dp4a.u32.u32 %w, %aw, %bw, %cw;", dot(uint8_t{}, uint8_t{}));
  check_line<u32>("dp4a.s32.u32 %w, %aw, %bw, %cw;", dot(int8_t{}, uint8_t{}));
  check_line<u32>("dp4a.u32.s32 %w, %aw, %bw, %cw;", dot(uint8_t{}, int8_t{}));
  check_line<u32>("dp4a.s32.s32 %w, %aw, %bw, %cw;", dot(int8_t{}, int8_t{}));
}

TEST_CASE("ptx: comparisons and selections of integers") {
  check_line<i32>("setp.lt.s32 %p, %aw, %bw;", [](i32 a, i32 b, i32) { return a < b; });
  check_line<u32>("setp.lt.u32 %p, %aw, %bw;", [](u32 a, u32 b, u32) { return a < b; });
  check_line<u64>("setp.hs.u64 %p, %al, %bl;", [](u64 a, u64 b, u64) { return a >= b; });
  check_line<i16>("setp.gt.s16 %p, %ah, %bh;", [](i16 a, i16 b, i16) { return a > b; });
  check_line<u32>("setp.eq.and.b32 %p, %aw, %bw, %cp;",
                  [](u32 a, u32 b, u32 c) { return a == b && (c & 1) != 0; });
  check_line<u32>("setp.ne.or.b32 %p, %aw, %bw, !%cp;",
                  [](u32 a, u32 b, u32 c) { return a != b || (c & 1) == 0; });
  check_line<u32>("selp.b32 %w, %aw, %bw, %cp;",
                  [](u32 a, u32 b, u32 c) { return (c & 1) != 0 ? a : b; });
  check_line<u32>("set.le.u32.s32 %w, %aw, %bw;",
                  [](u32 a, u32 b, u32) { return i32(a) <= i32(b) ? ~0u : 0u; });
  check_line<u32>("slct.b32.s32 %w, %aw, %bw, %cw;",
                  [](u32 a, u32 b, u32 c) { return i32(c) >= 0 ? a : b; });
  check_line<u32>("@%ap add.u32 %w, %bw, 1;",
                  [](u32 a, u32 b, u32) { return (a & 1) != 0 ? b + 1 : 0; });
}

TEST_CASE("ptx: labels belong to the braces around them, as inlined assembly has them") {
  const std::string twice =
      "mov.u32 %w, 0;"
      "{ .reg .pred less; setp.lt.u32 less, %aw, %bw; @less bra DONE; add.u32 %w, %w, 1; DONE: }"
      "{ .reg .pred less; setp.lt.u32 less, %bw, %cw; @less bra DONE; add.u32 %w, %w, 2; DONE: }";
  check_line<u32>(twice, [](u32 a, u32 b, u32 c) { return (a < b ? 0u : 1u) + (b < c ? 0u : 2u); });
  check_line<u32>(
      "mov.u32 %w, %aw; { @%bp bra DONE; { @%cp bra DONE; mov.u32 %w, 1; DONE: } "
      "add.u32 %w, %w, 2; } DONE: add.u32 %w, %w, 4;",
      [](u32 a, u32 b, u32 c) {
        if ((b & 1) != 0) return a + 4;
        return ((c & 1) != 0 ? a : 1u) + 6;
      });
}

TEST_CASE("ptx: a block's own addresses are those of a cluster of one block") {
  check_line<u32>("mapa.shared::cluster.u32 %w, %aw, 0;", [](u32 a, u32, u32) { return a; });
  check_line<u64>("mapa.u64 %l, %al, 0;", [](u64 a, u64, u64) { return a; });
}

TEST_CASE("ptx: loads into wider registers") {
  check_line<u64>("ld.global.u8 %w, [%at];", [](u64 a, u64, u64) { return u32{uint8_t(a)}; });
  check_line<u64>("ld.global.s8 %w, [%at];", [](u64 a, u64, u64) { return i32{int8_t(a)}; });
  check_line<u64>("ld.global.s8 %h, [%at];", [](u64 a, u64, u64) { return i16{int8_t(a)}; });
  check_line<u64>("ld.global.u16 %w, [%at+2];", [](u64 a, u64, u64) { return u32{u16(a >> 16)}; });
  check_line<u64>("ld.global.s16 %w, [%at+2];", [](u64 a, u64, u64) { return i32{i16(a >> 16)}; });
  check_line<u64>("ld.global.u32 %l, [%at+4];", [](u64 a, u64, u64) { return a >> 32; });
  check_line<u64>("ld.global.s32 %l, [%at+4];", [](u64 a, u64, u64) { return i64{i32(a >> 32)}; });
  check_line<u64>("ld.global.s8 %l, [%at];", [](u64 a, u64, u64) { return i64{int8_t(a)}; });
  check_line<u64>("ld.global.u64 %at, [%at+8]; mov.b64 %l, %at;",
                  [](u64, u64 b, u64) { return b; });
  check_line<u64>("ld.global.v2.s16 {%unused, %w}, [%at];",
                  [](u64 a, u64, u64) { return i32{i16(a >> 16)}; });
  check_line<u64>("ld.global.v2.u32 {_, %w}, [%at+8];",
                  [](u64, u64 b, u64) { return u32(b >> 32); });
}

TEST_CASE("ptx: conversions of integers") {
  check_line<u64>("cvt.s64.s32 %l, %aw;", [](u64 a, u64, u64) { return i64{i32(a)}; });
  check_line<u64>("cvt.s64.s32 %l, %al;", [](u64 a, u64, u64) { return i64{i32(a)}; });
  check_line<u64>("cvt.u64.u32 %l, %al;", [](u64 a, u64, u64) { return u64{u32(a)}; });
  check_line<u64>("cvt.u64.u32 %l, %aw;", [](u64 a, u64, u64) { return u64{u32(a)}; });
  check_line<u32>("cvt.s32.s16 %w, %ah;", [](u32 a, u32, u32) { return i32{i16(a)}; });
  check_line<u32>("cvt.s32.s8 %w, %aw;", [](u32 a, u32, u32) { return i32{int8_t(a)}; });
  check_line<u64>("cvt.u32.u64 %w, %al;", [](u64 a, u64, u64) { return u32(a); });
  check_line<u64>("cvt.u16.u64 %h, %al;", [](u64 a, u64, u64) { return u16(a); });
  check_line<i64>("cvt.sat.s32.s64 %w, %al;",
                  [](i64 a, i64, i64) { return i32(std::clamp<i64>(a, INT32_MIN, INT32_MAX)); });
  check_line<i32>("cvt.rn.f32.s32 %f, %aw;", [](i32 a, i32, i32) { return static_cast<float>(a); });
  check_line<u64>("cvt.rn.f32.u64 %f, %al;", [](u64 a, u64, u64) { return static_cast<float>(a); });
  check_line<i64>("cvt.rn.f64.s64 %d, %al;",
                  [](i64 a, i64, i64) { return static_cast<double>(a); });
  check_line<u64>("mov.b64 %l, {%aw, %bw};", [](u64 a, u64 b, u64) { return b << 32 | u32(a); });
}

}  // namespace wide::test
