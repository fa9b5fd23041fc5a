// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// PTX's floating-point instructions, line by line: rounding as the PTX ISA prescribes it, bit for
// bit; approximations within its stated error. The widest type that the host has is the reference.
#include <algorithm>
#include <cfenv>
#include <utility>

#include "verify/simt/formats.hpp"
#include "verify/support/ptx_lanes.hpp"

namespace wide::test {

namespace {

/// Evaluates with the host's rounding set; volatile keeps it between the two calls.
template <class T, class Function>
T rounded(int mode, const Function& function, T a, T b, T c = T{}) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T result = function(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}

constexpr auto kAdd = [](auto a, auto b, auto) { return a + b; };
constexpr auto kMultiply = [](auto a, auto b, auto) { return a * b; };
constexpr auto kDivide = [](auto a, auto b, auto) { return a / b; };
constexpr auto kFuse = [](auto a, auto b, auto c) { return std::fma(a, b, c); };

float flush(float a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a;
}

template <class T>
void check_rounding(const std::string& type, const std::string& r) {
  const std::pair<const char*, int> modes[]{
      {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [word, host] : modes) {
    const int mode = host;
    const std::string suffix =
        std::string(".") + word + "." + type + " %" + r + ", %a" + r + ", %b" + r;
    check_line<T>("add" + suffix + ";", [&](T a, T b, T) { return rounded(mode, kAdd, a, b); });
    check_line<T>("mul" + suffix + ";",
                  [&](T a, T b, T) { return rounded(mode, kMultiply, a, b); });
    check_line<T>("div" + suffix + ";", [&](T a, T b, T) { return rounded(mode, kDivide, a, b); });
    check_line<T>("fma" + suffix + ", %c" + r + ";",
                  [&](T a, T b, T c) { return rounded(mode, kFuse, a, b, c); });
  }
}

/// PTX's min and max: a number wins over NaN, and minus zero is below zero.
float smaller(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return std::min(a, b);
}

uint32_t saturated_to_unsigned(float a) {
  if (std::isnan(a)) return 0;
  const double whole = std::trunc(static_cast<double>(a));
  return static_cast<uint32_t>(std::clamp(whole, 0.0, 4294967295.0));
}
int32_t saturated_to_signed(double whole) {
  if (std::isnan(whole)) return 0;
  return static_cast<int32_t>(std::clamp(whole, -2147483648.0, 2147483647.0));
}

}  // namespace

TEST_CASE("ptx: every rounding of f32 and f64") {
  check_rounding<float>("f32", "f");
  check_rounding<double>("f64", "d");
}

TEST_CASE("ptx: flushing, saturation, extremes, signs") {
  check_line<float>("add.ftz.f32 %f, %af, %bf;",
                    [](float a, float b, float) { return flush(flush(a) + flush(b)); });
  check_line<float>("mul.sat.f32 %f, %af, %bf;", [](float a, float b, float) {
    const float product = a * b;
    return std::isnan(product) ? 0.0f : std::clamp(product, 0.0f, 1.0f);
  });
  check_line<float>("min.f32 %f, %af, %bf;", [](float a, float b, float) { return smaller(a, b); });
  check_line<float>("max.f32 %f, %af, %bf;",
                    [](float a, float b, float) { return -smaller(-a, -b); });
  check_line<float>("max.NaN.f32 %f, %af, %bf;", [](float a, float b, float) {
    return std::isnan(a) || std::isnan(b) ? NAN : -smaller(-a, -b);
  });
  check_line<double>("min.f64 %d, %ad, %bd;", [](double a, double b, double) {
    return a < b || std::isnan(b) ? a : (a == b && std::signbit(a) ? a : b);
  });
  check_line<float>("abs.f32 %f, %af;", [](float a, float, float) { return std::fabs(a); });
  check_line<float>("neg.f32 %f, %af;", [](float a, float, float) { return -a; });
  check_line<float>("copysign.f32 %f, %af, %bf;",
                    [](float a, float b, float) { return std::copysign(b, a); });
}

TEST_CASE("ptx: comparisons of floats, ordered and not") {
  check_line<float>("setp.lt.f32 %p, %af, %bf;", [](float a, float b, float) { return a < b; });
  check_line<float>("setp.ne.f32 %p, %af, %bf;",
                    [](float a, float b, float) { return a < b || a > b; });
  check_line<float>("setp.neu.f32 %p, %af, %bf;", [](float a, float b, float) { return a != b; });
  check_line<float>("setp.geu.f32 %p, %af, %bf;", [](float a, float b, float) { return !(a < b); });
  check_line<float>("setp.num.f32 %p, %af, %bf;",
                    [](float a, float b, float) { return !std::isnan(a) && !std::isnan(b); });
  check_line<float>("setp.nan.f32 %p, %af, %bf;",
                    [](float a, float b, float) { return std::isnan(a) || std::isnan(b); });
  check_line<double>("setp.le.f64 %p, %ad, %bd;",
                     [](double a, double b, double) { return a <= b; });
  check_line<float>("selp.f32 %f, %af, %bf, %cp;",
                    [](float a, float b, float c) { return (to_bits(c) & 1) != 0 ? a : b; });
}

TEST_CASE("ptx: conversions between floats and integers") {
  check_line<float>("cvt.f64.f32 %d, %af;",
                    [](float a, float, float) { return static_cast<double>(a); });
  check_line<double>("cvt.rn.f32.f64 %f, %ad;",
                     [](double a, double, double) { return static_cast<float>(a); });
  check_line<float>("cvt.rzi.u32.f32 %w, %af;",
                    [](float a, float, float) { return saturated_to_unsigned(a); });
  check_line<float>("cvt.rni.s32.f32 %w, %af;", [](float a, float, float) {
    return saturated_to_signed(std::nearbyint(static_cast<double>(a)));
  });
  check_line<float>("cvt.rmi.s32.f32 %w, %af;", [](float a, float, float) {
    return saturated_to_signed(std::floor(static_cast<double>(a)));
  });
  check_line<float>("cvt.rpi.f32.f32 %f, %af;", [](float a, float, float) { return std::ceil(a); });
  check_line<float>("cvt.rni.f32.f32 %f, %af;",
                    [](float a, float, float) { return std::nearbyint(a); });
}

TEST_CASE("ptx: what is no number becomes an integer as the manual says") {
  constexpr uint64_t kHalfOf64 = uint64_t{1} << 63;
  check_line<float>("cvt.rzi.u64.f32 %l, %af;", [](float a, float, float) {
    if (std::isnan(a)) return kHalfOf64;
    return a <= 0 ? 0 : a >= 0x1p64f ? ~uint64_t{0} : static_cast<uint64_t>(a);
  });
  check_line<float>("cvt.rzi.s64.f32 %l, %af;", [](float a, float, float) {
    if (std::isnan(a) || a < -0x1p63f) return kHalfOf64;
    return a >= 0x1p63f ? kHalfOf64 - 1 : static_cast<uint64_t>(static_cast<int64_t>(a));
  });
  check_line<double>("cvt.rzi.s32.f64 %w, %ad;", [](double a, double, double) {
    return std::isnan(a) ? INT32_MIN : saturated_to_signed(std::trunc(a));
  });
  check_line<double>("cvt.rzi.u32.f64 %w, %ad;", [](double a, double, double) {
    if (std::isnan(a)) return uint32_t{1} << 31;
    return static_cast<uint32_t>(std::clamp(std::trunc(a), 0.0, 4294967295.0));
  });
}

TEST_CASE("ptx: tf32 rounds, and keeps every NaN one") {
  const std::vector<Operands> operands{{0x3f801000}, {0x3f800fff}, {0xbf801000}, {0x7f800000},
                                       {0x7f7fffff}, {0x7f800001}, {0xff801fff}, {0x7fffffff}};
  const std::vector<uint64_t> wanted{0x3f802000, 0x3f800000, 0xbf802000, 0x7f800000,
                                     0x7f800000, 0x7fffe000, 0x7fffe000, 0x7fffe000};
  std::vector<Operands> padded = operands;
  padded.resize(256);
  std::vector<uint64_t> results = execute("cvt.rna.tf32.f32 %w, %aw;", padded);
  results.resize(wanted.size());
  CHECK(results == wanted);
}

TEST_CASE("ptx: arithmetic in f32 makes one NaN") {
  for (const char* line :
       {"add.f32 %f, %af, %bf;", "sub.f32 %f, %af, %bf;", "mul.f32 %f, %af, %bf;",
        "mul.ftz.f32 %f, %af, %bf;", "fma.rn.f32 %f, %af, %bf, %cf;", "div.rn.f32 %f, %af, %bf;",
        "div.rz.f32 %f, %af, %bf;", "min.f32 %f, %af, %bf;", "max.NaN.f32 %f, %af, %bf;",
        "sqrt.rn.f32 %f, %af;", "rsqrt.approx.f32 %f, %af;", "lg2.approx.f32 %f, %af;"}) {
    INFO(line);
    int64_t count = 0, wrong = 0;
    for (const uint64_t bits : execute(line, float_operands())) {
      if (!std::isnan(from_bits<float>(bits))) continue;
      ++count;
      wrong += bits != 0x7fffffff;
    }
    CHECK(count > 0);
    CHECK(wrong == 0);
  }
}

TEST_CASE("ptx: an approximate quotient by more than 2^126 is zero, or of infinity no number") {
  check_line<float>("div.approx.f32 %f, %af, %bf;", [](float a, float b, float) {
    const bool is_beyond = std::fabs(b) > 0x1p126f && std::isfinite(b);
    return is_beyond ? a * std::copysign(0.0f, b) : a / b;
  });
  check_line<float>("div.full.f32 %f, %af, %bf;", [](float a, float b, float) { return a / b; });
}

TEST_CASE("ptx: 16-bit floats") {
  using simt::from_bf16, simt::to_bf16, simt::from_f16, simt::to_f16;
  check_line<float>("cvt.rn.bf16.f32 %h, %af;", [](float a, float, float) {
    return std::isnan(a) ? uint16_t{0x7fff} : to_bf16(a);
  });
  check_line<float>("cvt.rn.f16.f32 %h, %af;", [](float a, float, float) {
    return std::isnan(a) ? uint16_t{0x7fff} : to_f16(a);
  });
  check_line<uint32_t>("cvt.f32.f16 %f, %ah;", [](uint32_t a, uint32_t, uint32_t) {
    return from_f16(static_cast<uint16_t>(a));
  });
  check_line<uint32_t>("cvt.f32.bf16 %f, %ah;", [](uint32_t a, uint32_t, uint32_t) {
    return from_bf16(static_cast<uint16_t>(a));
  });
  const auto pair = [](float low, float high, auto&& convert) {
    const auto half = [&](float x) -> uint32_t { return std::isnan(x) ? 0x7fff : convert(x); };
    return half(low) | half(high) << 16;
  };
  check_line<float>("cvt.rn.bf16x2.f32 %w, %af, %bf;",
                    [&](float a, float b, float) { return pair(b, a, to_bf16); });
  check_line<float>("cvt.rn.f16x2.f32 %w, %af, %bf;",
                    [&](float a, float b, float) { return pair(b, a, to_f16); });
  // Of pairs each half for itself; NaN is the canonical one, whatever its payload was.
  const auto halves = [](uint32_t word, auto&& convert) {
    return std::pair(convert(static_cast<uint16_t>(word)),
                     convert(static_cast<uint16_t>(word >> 16)));
  };
  const auto larger = [](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? NAN : -smaller(-a, -b);
  };
  const auto larger_pair = [&](auto&& from, auto&& to) {
    return [=](uint32_t a, uint32_t b, uint32_t) {
      const auto [a0, a1] = halves(a, from);
      const auto [b0, b1] = halves(b, from);
      return pair(larger(a0, b0), larger(a1, b1), to);
    };
  };
  check_line<uint32_t>("max.NaN.f16x2 %w, %aw, %bw;", larger_pair(from_f16, to_f16));
  check_line<uint32_t>("max.NaN.bf16x2 %w, %aw, %bw;", larger_pair(from_bf16, to_bf16));
  check_line<uint32_t>("max.NaN.f16 %h, %ah, %bh;", [&](uint32_t a, uint32_t b, uint32_t) {
    return static_cast<uint16_t>(larger_pair(from_f16, to_f16)(a & 0xffffu, b & 0xffffu, 0));
  });
  // Products of two 11-bit significands are exact in f64, and so is what is added to them.
  const auto fused = [&](uint32_t a, uint32_t b, uint32_t c) {
    const auto lane = [&](int shift) {
      const auto value = [&](uint32_t x) {
        return static_cast<double>(from_f16(static_cast<uint16_t>(x >> shift)));
      };
      return static_cast<float>(value(a) * value(b) + value(c));
    };
    return pair(lane(0), lane(16), to_f16);
  };
  std::vector<Operands> small;
  for (uint32_t i = 0; i < 512; ++i) {  // normal halves of moderate size: f32 in between is exact
    const auto half = [&](uint32_t salt) -> uint64_t {
      return to_f16(static_cast<float>(static_cast<int>((i * salt) % 61) - 30) / 8);
    };
    small.push_back(
        {half(7) | half(11) << 16, half(13) | half(17) << 16, half(19) | half(23) << 16});
  }
  const std::vector<uint64_t> results = execute("fma.rn.f16x2 %w, %aw, %bw, %cw;", small);
  for (size_t i = 0; i < small.size(); ++i) {
    const auto [a, b, c] = small[i];
    CHECK(static_cast<uint32_t>(results[i]) ==
          fused(static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c)));
  }
}

TEST_CASE("ptx: approximations are within the error that PTX states") {
  check_line<float>("sqrt.rn.f32 %f, %af;", [](float a, float, float) { return std::sqrt(a); });
  check_line<double>("sqrt.rn.f64 %d, %ad;", [](double a, double, double) { return std::sqrt(a); });
  check_line<float>("rcp.rn.f32 %f, %af;", [](float a, float, float) { return 1.0f / a; });
  // The PTX ISA states relative errors, or 1 or 2 units in the last place, but of lg2, sin and cos.
  check_approximation("rcp.approx.f32 %f, %af;", {0x1p-23}, [](double a) { return 1 / a; });
  check_approximation("rsqrt.approx.f32 %f, %af;", {1.3e-7},
                      [](double a) { return 1 / std::sqrt(a); });
  check_approximation("ex2.approx.f32 %f, %af;", {0x1p-22}, [](double a) { return std::exp2(a); });
  check_approximation("ex2.approx.ftz.f32 %f, %af;", {0x1p-22},
                      [](double a) { return std::exp2(a); });
  check_approximation("tanh.approx.f32 %f, %af;", {0x1p-11}, [](double a) { return std::tanh(a); });
  // "The maximum absolute error is 2^-22 when the input operand is in the range (0.5, 2)", that is
  // for results below 1; "for positive finite inputs outside of this interval, maximum relative
  // error is 2^-22".
  check_approximation("lg2.approx.f32 %f, %af;", {0x1p-22, 0x1p-22},
                      [](double a) { return std::log2(a); });
  // "The maximum absolute error is 2^-20.5 in the range [-2pi .. 2pi]."
  check_approximation("sin.approx.f32 %f, %af;", {0, 6.7e-7}, [](double a) { return std::sin(a); });
  check_approximation("cos.approx.f32 %f, %af;", {0, 6.7e-7}, [](double a) { return std::cos(a); });
}

TEST_CASE("ptx: neither zero nor twice the value is an approximation, however small that is") {
  for (const double wanted : {1.0, -1e-3, 1e-10, -1e-30, 0x1p-126, 0x1p-140}) {
    INFO(wanted);
    for (const Tolerance tolerance : {Tolerance{4e-7}, Tolerance{0x1p-11}, Tolerance{4e-5}}) {
      CHECK(is_near(wanted, wanted, tolerance));
      CHECK_FALSE(is_near(wanted, 0, tolerance));
      CHECK_FALSE(is_near(wanted, 2 * wanted, tolerance));
    }
  }
  CHECK(is_near(0x1p-149, 0, {4e-7}));
  CHECK(is_near(0x1p-127, 0, {4e-7}, kSmallestNormal));
  CHECK_FALSE(is_near(0x1p-124, 0, {4e-7}, kSmallestNormal));
  CHECK(is_near(1e-9, 0, {0, 1e-6}));
  CHECK_FALSE(is_near(NAN, 0, {1, 1}));
  CHECK_FALSE(is_near(INFINITY, 1, {1, 1}));
}

}  // namespace wide::test
