// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// host/core/math_cpu.hpp against <cmath> in fp64: every bound that its comments state.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "host/core/math_cpu.hpp"

namespace wide::cpu {

namespace {

constexpr int kSteps = 200'000;

/// Units in the last place of the float that `expected` rounds to.
double ulps(float got, double expected) {
  const auto rounded = static_cast<float>(std::fabs(expected));
  const double unit =
      std::nextafter(rounded, std::numeric_limits<float>::infinity()) - double(rounded);
  return std::fabs(double(got) - expected) / unit;
}

/// Largest excess over `bound`, in ulp, over [low, high]; not above 0 where all hold.
template <class F, class Exact, class Bound>
double worst_excess(float low, float high, const F& f, const Exact& exact, const Bound& bound) {
  double worst = -1e9;
  for (int i = 0; i <= kSteps; ++i) {
    const float x = low + (high - low) * (static_cast<float>(i) / kSteps);
    const double excess = ulps(f(x), exact(double(x))) - bound(double(x));
    if (!(excess <= worst)) worst = excess;  // NaN, too
  }
  return worst;
}

auto constant(double ulp) {
  return [ulp](double) { return ulp; };
}

TEST_CASE("the CPU's elementary functions keep the bounds that they state") {
  const auto e = [](double x) { return std::exp(x); };
  CHECK(worst_excess(-87, 88, exp, e, constant(2)) <= 0);
  CHECK(worst_excess(-103, 0, exp_of_negative, e, constant(2)) <= 0);
  CHECK(worst_excess(
            -60, 0, expm1_of_negative, [](double x) { return std::expm1(x); }, constant(2)) <= 0);
  CHECK(worst_excess(
            -20, 20, tanh, [](double x) { return std::tanh(x); }, constant(4)) <= 0);
  CHECK(worst_excess(
            0, 1, log1p_of_fraction, [](double x) { return std::log1p(x); }, constant(4)) <= 0);
  const auto log = [](double x) { return std::log(x); };
  CHECK(worst_excess(2, 1e6f, log_of_normal, log, constant(2)) <= 0);
  CHECK(worst_excess(1e-6f, 0.5f, log_of_normal, log, constant(2)) <= 0);
  const auto normal = [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); };
  CHECK(worst_excess(-12, 12, gelu, normal, [](double x) { return 7 + (x < 0 ? x * x / 2 : 0); }) <=
        0);
}

TEST_CASE("infinities and NaN come out as the functions' limits") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  CHECK(exp(-kInfinity) == 0);
  CHECK(exp(kInfinity) == kInfinity);
  CHECK((tanh(kInfinity) == 1 && tanh(-kInfinity) == -1));
  CHECK((gelu(-kInfinity) == 0 && gelu(kInfinity) == kInfinity));
  CHECK((gelu_tanh(-kInfinity) == 0 && gelu_tanh(kInfinity) == kInfinity));
  CHECK((silu(-kInfinity) == 0 && silu(kInfinity) == kInfinity));
  for (const auto f : {exp, tanh, gelu, gelu_tanh, silu, relu, log_of_normal}) {
    CHECK(std::isnan(f(kNaN)));
  }
}

}  // namespace

}  // namespace wide::cpu
