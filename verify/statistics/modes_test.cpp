// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The dip against its definition, tried for every mode, its p against others' quantiles and against
// simulation, and what a clock's steps do to both.
#include "bench/statistics/modes.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

namespace wide::bench {

namespace {

using Values = std::vector<double>;

/// The same on every machine, which the library's distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  template <class Draw>
  Values sorted(size_t n, const Draw& draw) {
    Values values(n);
    for (double& value : values) value = draw();
    std::sort(values.begin(), values.end());
    return values;
  }

 private:
  std::mt19937_64 bits_;
};

double on_line(double x0, double y0, double x1, double y1, double x) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/// Whether a distribution that is convex before x[mode] and concave behind it comes within `reach`
/// of every corner of the values'. Heights are counts: at x[i] they leave [i + 1 - reach, i +
/// reach]. What the convex side must be at the mode, at least, and the concave one, at most, must
/// leave room for a jump upward.
bool has_mode_at(const Values& x, size_t mode, double reach) {
  constexpr double kRounding = 1e-12;
  const auto least = [&](size_t i) { return static_cast<double>(i + 1) - reach; };
  const auto most = [&](size_t i) { return static_cast<double>(i) + reach; };
  double before = 0, behind = static_cast<double>(x.size());
  for (size_t j = 0; j < mode; ++j) {
    before = std::max(before, least(j));
    if (least(j) > most(j) + kRounding) return false;
    for (size_t i = 0; i < j; ++i) {
      before = std::max(before, on_line(x[i], most(i), x[j], least(j), x[mode]));
      for (size_t k = j + 1; k <= mode; ++k) {
        if (least(j) > on_line(x[i], most(i), x[k], most(k), x[j]) + kRounding) return false;
      }
    }
  }
  for (size_t j = mode + 1; j < x.size(); ++j) {
    behind = std::min(behind, most(j));
    if (least(j) > most(j) + kRounding) return false;
    for (size_t i = j + 1; i < x.size(); ++i) {
      behind = std::min(behind, on_line(x[i], least(i), x[j], most(j), x[mode]));
      for (size_t k = mode; k < j; ++k) {
        if (most(j) < on_line(x[i], least(i), x[k], least(k), x[j]) - kRounding) return false;
      }
    }
  }
  return before <= most(mode) + kRounding && behind >= least(mode) - kRounding &&
         before <= behind + kRounding;
}

double dip_by_definition(const Values& x) {
  double too_small = 0, enough = static_cast<double>(x.size());
  for (int step = 0; step < 45; ++step) {
    const double reach = (too_small + enough) / 2;
    bool is_enough = false;
    for (size_t mode = 0; mode < x.size(); ++mode)
      is_enough = is_enough || has_mode_at(x, mode, reach);
    (is_enough ? enough : too_small) = reach;
  }
  return enough / static_cast<double>(x.size());
}

/// Two of the same size, `apart` deviations from one another.
Values two_modes(Random& random, size_t n, double apart) {
  return random.sorted(n, [&] { return random.normal() + (random.uniform() < 0.5 ? 0 : apart); });
}

}  // namespace

TEST_CASE("the dip is the distance to the nearest distribution with a single mode") {
  Random random(1);
  for (int i = 0; i < 400; ++i) {
    const size_t n = 2 + static_cast<size_t>(i) % 8;
    const Values x = i % 3 == 0   ? random.sorted(n, [&] { return random.uniform(); })
                     : i % 3 == 1 ? two_modes(random, n, 8)
                                  : random.sorted(n, [&] { return std::pow(random.uniform(), 4); });
    INFO("set " << i << ", " << n << " values");
    CHECK(dip_of(x) == Catch::Approx(dip_by_definition(x)).epsilon(1e-10));
  }
}

TEST_CASE("dips that are known without computing") {
  CHECK(dip_of(Values{1, 2}) == 0.25);
  Values even;
  for (int i = 0; i < 100; ++i) even.push_back(i);
  CHECK(dip_of(even) == 1. / 200);  // none is smaller
  // No dip is larger than that of two points far apart, half of the values each.
  CHECK(dip_of(Values{0, 1e-9, 1, 1 + 1e-9}) == Catch::Approx(0.25).epsilon(1e-6));
  Random random(2);
  const Values x = two_modes(random, 200, 5);
  Values mirrored(x.rbegin(), x.rend()), moved;
  for (double& value : mirrored) value = -value;
  for (const double value : x) moved.push_back(1e6 + 1000 * value);
  CHECK(dip_of(mirrored) == Catch::Approx(dip_of(x)).epsilon(1e-12));
  CHECK(dip_test(moved, 1e-9)->statistic == Catch::Approx(dip_of(x)).epsilon(1e-9));
}

TEST_CASE("p is that of the table that others simulated") {
  // Quantiles of R's diptest 0.75-5, from a million samples each.
  const struct {
    size_t n;
    double tail, dip;
  } known[] = {{5, 0.05, 0.186391796027944},     {10, 0.5, 0.0977817630384725},
               {10, 0.05, 0.139611395137099},    {10, 0.01, 0.159684158858235},
               {20, 0.1, 0.09723460181229029},   {30, 0.001, 0.117164140184417},
               {50, 0.5, 0.048851155289608},     {50, 0.05, 0.0702737877191269},
               {50, 0.01, 0.0811998415355918},   {100, 0.1, 0.047152783315718},
               {100, 0.01, 0.059024132304226},   {200, 0.01, 0.0426864799777448},
               {500, 0.05, 0.0237294742633411},  {1000, 0.5, 0.0117439009052552},
               {1000, 0.05, 0.0169343970067564}, {1000, 0.01, 0.0196080260483234},
               {1000, 0.001, 0.0228689168972669}};
  for (const auto& k : known) {
    INFO(k.n << " values, tail " << k.tail);
    CHECK(dip_p(k.dip, k.n) == Catch::Approx(k.tail).epsilon(0.03));
  }
  // Between the table's sizes, half way from 50 to 100 and at 20000, which is beyond it.
  CHECK(dip_p((0.49706 + 0.51073) / 2 / std::sqrt(75.), 75) == Catch::Approx(0.05).epsilon(0.005));
  CHECK(dip_p(0.62697 / std::sqrt(20000.), 20000) == Catch::Approx(0.01).epsilon(0.005));
  CHECK(dip_p(0.25, 1000) == kLeastDipP);
  CHECK(dip_p(0.005, 100) == 1);
  for (double dip = 0.001, last = 1; dip < 0.25; dip += 0.001) {
    const double p = dip_p(dip, 317);
    CHECK((p <= last && p >= kLeastDipP));
    last = p;
  }
}

TEST_CASE(
    "uniform samples have a small p as often as it says, normal ones seldom, two modes mostly") {
  Random random(3);
  const int samples = 1500;
  int uniform_5 = 0, uniform_1 = 0, normal = 0, two = 0;
  for (int i = 0; i < samples; ++i) {
    const size_t n = 37 + static_cast<size_t>(i) % 40;  // most of them between the table's sizes
    const double p = dip_test(random.sorted(n, [&] { return random.uniform(); }))->p;
    uniform_5 += p < 0.05;
    uniform_1 += p < 0.01;
    normal += dip_test(random.sorted(n, [&] { return random.normal(); }))->modes() > 1;
    two += dip_test(two_modes(random, n, 8))->modes() > 1;
  }
  // Three standard deviations around the binomial's mean.
  CHECK(uniform_5 > samples * 0.05 - 3 * std::sqrt(samples * 0.05));
  CHECK(uniform_5 < samples * 0.05 + 3 * std::sqrt(samples * 0.05));
  CHECK(uniform_1 < samples * 0.01 + 3 * std::sqrt(samples * 0.01));
  CHECK(normal < samples * 0.003);
  CHECK(two > samples * 0.97);
}

TEST_CASE("a clock's steps are no modes, and modes are seen through them") {
  Random random(4);
  int one = 0, two = 0;
  for (int i = 0; i < 100; ++i) {
    for (const double step : {32.0, 0.0}) {
      const auto stepped = [&](double apart) {
        Values values = two_modes(random, 60, apart);
        for (double& value : values) value = 32 * std::round((3000 + 40 * value) / 32);
        return dip_test(values, step)->modes();
      };
      one += stepped(0) > 1;
      two += stepped(7) > 1;
    }
  }
  CHECK(one == 0);
  CHECK(two >= 198);
  // Two steps of a clock, half of the samples each, are one mode between them.
  Values halves(60, 32);
  std::fill(halves.begin(), halves.begin() + 30, 64);
  CHECK(dip_test(halves, 32)->modes() == 1);
  CHECK(dip_test(halves)->modes() == 1);
  CHECK(dip_test(halves, 1)->modes() == 2);
}

TEST_CASE("there is no dip where there is nothing to tell") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK_FALSE(dip_test(Values{}));
  CHECK_FALSE(dip_test(Values{1, 2, 3}));
  CHECK(dip_test(Values{1, 2, 3, 4}));
  CHECK_FALSE(dip_test(Values(50, 7.5)));
  CHECK_FALSE(dip_test(Values{1, 2, 3, inf}));
  CHECK_FALSE(dip_test(Values{1, std::nan(""), 3, 4}));
  // In any order, with ties and neighbours that hardly differ.
  CHECK(dip_test(Values{4, 1, 3, 2}) == dip_test(Values{1, 2, 3, 4}));
  CHECK(dip_test(Values{1, 1, 1, 1, 2}, 1e-30)->statistic > 0);
  CHECK(dip_test(Values{5e-324, 1e-323, 1, 1e300})->statistic > 0);
}

TEST_CASE("prints the quantiles of bench/statistics/dip_quantiles.hpp", "[.quantiles]") {
  constexpr size_t kSizes[] = {4,  5,  6,  7,   8,   9,   10,   12,   15,
                               20, 30, 50, 100, 200, 500, 1000, 2000, 5000};
  constexpr double kTails[] = {0.9,  0.75, 0.5,  0.3,   0.2,   0.1,
                               0.05, 0.02, 0.01, 0.005, 0.002, 0.001};
  for (const size_t n : kSizes) {
    Random random(n);
    const size_t samples = 400'000'000 / std::max<size_t>(n, 400);
    Values dips;
    for (size_t i = 0; i < samples; ++i)
      dips.push_back(dip_of(random.sorted(n, [&] { return random.uniform(); })));
    std::sort(dips.begin(), dips.end());
    std::printf("    {");
    for (const double tail : kTails) {
      const double place = (1 - tail) * static_cast<double>(samples - 1);
      std::printf("%.5f%s", std::sqrt(static_cast<double>(n)) * dips[static_cast<size_t>(place)],
                  tail == 0.001 ? "},\n" : ", ");
    }
    std::fflush(stdout);
  }
}

}  // namespace wide::bench
