// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tests, intervals and fits where the vectors do not reach: worked out by hand, degenerate data,
// and what must be the same whichever way it is asked.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <random>

#include "bench/statistics/distributions.hpp"
#include "bench/statistics/growth.hpp"
#include "bench/statistics/intervals.hpp"
#include "bench/statistics/moderated.hpp"
#include "bench/statistics/moments.hpp"
#include "bench/statistics/multiple.hpp"
#include "bench/statistics/normality.hpp"
#include "bench/statistics/order.hpp"
#include "bench/statistics/ranks.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Values = std::vector<double>;

double mean_of(std::span<const double> values) {
  return moments(values).mean;
}

TEST_CASE("sums keep what a large term would swallow") {
  CHECK(sum(Values{1, 1e100, 1, -1e100}) == 2);
  CHECK(sum(Values(10, 0.1)) == 1);
  CHECK(sum({}) == 0);
  CHECK(moments(Values{1e15, 1e15 + 1, 1e15 + 2}).variance == 1);
  // Their mean is no double: it is off by a 24th.
  CHECK(moments(Values{1e15, 1e15, 1e15 + 1}).variance == Approx(1. / 3).epsilon(1e-12));
}

TEST_CASE("outliers are counted by their fences") {
  // Quartiles 3 and 7: mild beyond -3 and 13, severe beyond -9 and 19.
  const Values nine{-20, 3, 3, 4, 5, 6, 7, 7, 14};
  CHECK(count_outliers(nine) == Outliers{0, 1, 1, 0});
  CHECK(count_outliers(Values{3, 3, 3, 3, 7, 7, 7, 7, 13}) == Outliers{});  // on a fence: inside
  CHECK(count_outliers({}) == Outliers{});
  const Fences fences(Values{3, 3, 3, 3, 7, 7, 7, 7, 13});  // of quartiles 3 and 7
  CHECK((fences.severity(13) == 0 && fences.severity(13.5) == 1 && fences.severity(19) == 1));
  CHECK((fences.severity(19.5) == 2 && fences.severity(-3) == 0 && fences.severity(-3.5) == 1));
  CHECK((fences.severity(-9) == 1 && fences.severity(-9.5) == 2));
}

TEST_CASE("undefined tests say so, and give no NaN") {
  const Values none, one{1}, equal{5, 5, 5, 5, 5, 5, 5, 5}, some{1, 2, 4, 8, 9, 11, 12, 20};
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Values broken = some;
    broken[3] = bad;
    CHECK_FALSE((student_test(broken, some) || welch_test(some, broken) || cohens_d(broken, some)));
    CHECK_FALSE((shapiro_wilk(broken) || anderson_darling(broken) || t_interval(broken)));
    CHECK_FALSE((mann_whitney(broken, some) || wilcoxon_signed_rank(broken)));
    CHECK_FALSE(levene_test(std::vector<Values>{broken, some}));
    CHECK_FALSE(welch_interval(broken, some));
    CHECK_FALSE(fit_growth(Values{1, 2, bad}, Values{1, 2, 3}));
  }
  for (const Values& few : {none, one}) {
    CHECK_FALSE((student_test(few, some) || welch_test(few, some) || hedges_g(some, few)));
    CHECK_FALSE((shapiro_wilk(few) || anderson_darling(few) || t_interval(few)));
    CHECK_FALSE((autocorrelation(few) || trend_per_step(few) || welch_interval(few, some)));
  }
  CHECK_FALSE((shapiro_wilk(equal) || anderson_darling(equal) || autocorrelation(equal)));
  CHECK_FALSE((student_test(equal, equal) || welch_test(equal, equal) || cohens_d(equal, equal)));
  CHECK_FALSE(levene_test(std::vector<Values>{equal, equal}));
  CHECK_FALSE(analyse_variance(std::vector<Values>{equal}));
  CHECK_FALSE((mann_whitney(none, some) || wilcoxon_signed_rank(Values{0, 0})));
  CHECK(t_interval(equal).value() == Interval{5, 5});
  CHECK(welch_interval(equal, equal).value() == Interval{0, 0});
  CHECK(mann_whitney(equal, equal).value().p == 1);
  CHECK(mann_whitney(Values(60, 2), Values(60, 2)).value().p == 1);
  CHECK(bootstrap(one, mean_of, 1) == Interval{1, 1});
  CHECK(bootstrap(equal, mean_of, 1) == Interval{5, 5});
}

TEST_CASE("ranks and their exact tests, by hand") {
  CHECK(midranks(Values{30, 10, 20, 20}) == Values{4, 1, 2.5, 2.5});
  // 3 against 3 without overlap: one of 20 assignments on either side.
  const auto apart = mann_whitney(Values{4, 5, 6}, Values{1, 2, 3});
  REQUIRE(apart);
  CHECK(apart->statistic == 9);
  CHECK(apart->p == Approx(0.1));
  CHECK(apart->rank_biserial == 1);
  CHECK(mann_whitney(Values{1, 2, 3}, Values{4, 5, 6}).value().rank_biserial == -1);
  // All six differences of one sign: 2 of 64.
  const auto shifted = wilcoxon_signed_rank(Values{1, 2, 3, 4, 5, 6});
  REQUIRE(shifted);
  CHECK(shifted->p == 2. / 64);
  CHECK(shifted->rank_biserial == 1);
  CHECK(wilcoxon_signed_rank(Values{-1, 0, -1, -1}).value().p == 0.25);
}

TEST_CASE("exact and approximated p are close where they meet") {
  std::mt19937_64 random(8);
  Values a, b, differences;
  for (int i = 0; i < 50; ++i) {
    const double x = static_cast<double>(random() % 1000);
    (i % 2 == 0 ? a : b).push_back(x + (i % 2 == 0 ? 100 : 0));
    differences.push_back(x - 400);
  }
  const double exact = mann_whitney(a, b).value().p;
  const double exact_pairs = wilcoxon_signed_rank(differences).value().p;
  a.push_back(500);  // one more, in the middle: normal
  differences.push_back(0.5);
  CHECK_FALSE(mann_whitney(a, b).value().is_exact);
  CHECK(std::fabs(mann_whitney(a, b).value().p - exact) < 0.03);
  CHECK_FALSE(wilcoxon_signed_rank(differences).value().is_exact);
  CHECK(std::fabs(wilcoxon_signed_rank(differences).value().p - exact_pairs) < 0.03);
}

TEST_CASE("a trend's p is close to that of all orders") {
  // 5 values that rise: S = 10 of 10 pairs, z = 9 / sqrt(50 / 3).
  const auto rising = mann_kendall(Values{1, 2, 3, 4, 5});
  REQUIRE(rising);
  CHECK(rising->statistic == 10);
  CHECK(rising->rank_biserial == 1);
  CHECK(rising->p == Approx(0.0274864).epsilon(1e-5));
  CHECK(mann_kendall(Values{5, 4, 3, 2, 1})->statistic == -10);
  CHECK(mann_kendall(Values{5, 4, 3, 2, 1})->p == rising->p);
  CHECK_FALSE(mann_kendall(Values{1, 2}));
  CHECK_FALSE(mann_kendall(Values(9, 4)));
  CHECK_FALSE(mann_kendall(Values{1, std::nan(""), 3}));
  for (const Values& values : {Values{1, 2, 3, 4, 5, 6, 7, 8}, Values{1, 2, 2, 3, 3, 3, 4, 5}}) {
    Values order = values;                               // sorted: the first of all orders
    std::map<double, std::pair<double, double>> orders;  // by |S|: how many, and p
    double count = 0;
    do {
      const auto test = mann_kendall(order);
      auto& [number, p] = orders[std::fabs(test->statistic)];
      number += 1;
      p = test->p;
      count += 1;
    } while (std::next_permutation(order.begin(), order.end()));
    double beyond = 0;
    for (auto it = orders.rbegin(); it != orders.rend(); ++it) {
      beyond += it->second.first / count;
      CHECK(it->second.second == Approx(beyond).margin(0.015));
    }
  }
}

TEST_CASE("signs, bands and sides") {
  const Values low{1, 2, 3, 4, 5}, high{2, 4, 6, 8, 10};
  CHECK(welch_test(low, high).value().statistic == -welch_test(high, low).value().statistic);
  CHECK(welch_test(low, high).value().p == welch_test(high, low).value().p);
  CHECK(cohens_d(high, low).value() == Approx(3 / 2.5));  // variances 10 and 2.5
  CHECK(hedges_g(high, low).value() == Approx(1.2 * (1 - 3. / (4 * 8 - 1))).epsilon(1e-3));
  for (const double sign : {1., -1.}) {
    CHECK(effect_band(sign * 0.19) == "negligible");
    CHECK(effect_band(sign * 0.2) == "small");
    CHECK(effect_band(sign * 0.5) == "medium");
    CHECK(effect_band(sign * 0.8) == "large");
  }
  const auto interval = welch_interval(low, high);
  REQUIRE(interval);
  CHECK(interval->lo + interval->hi == Approx(2 * (3 - 6)));
  // p is 5 % where the interval ends at 0.
  Values moved = high;
  for (double& value : moved) value += interval->hi;
  CHECK(welch_test(low, moved).value().p == Approx(0.05));
}

TEST_CASE("the bootstrap's interval is SciPy's BCa interval of the mean") {
  // Four runs of scipy.stats.bootstrap 1.10 with 200,000 resamples gave 10.28 to 10.32 and 29.00 to
  // 29.03; the percentile interval is [9.49, 27.71].
  Values values;
  for (int i = 0; i < 20; ++i) values.push_back(i * i * i / 100.);
  const Interval got = bootstrap(values, mean_of, 7, 100'000);
  CHECK(got.lo == Approx(10.3).margin(0.12));
  CHECK(got.hi == Approx(29.01).margin(0.15));
  const Interval again = bootstrap(values, mean_of, 7, 100'000);
  CHECK(again == got);
}

TEST_CASE("the bootstrap of a difference draws both sides, and skews as either does") {
  // Three runs of a Python script, the acceleration by leaving out each value in its turn, with
  // 60,000 resamples gave -0.44 to -0.39 and 5.00 to 5.04; the percentile interval is
  // [-0.64, 4.69].
  Values a, b;
  for (int i = 0; i < 12; ++i) a.push_back(i * i * i / 100.);
  for (int i = 0; i < 8; ++i) b.push_back(i * i / 10.);
  const Interval got = bootstrap_difference(a, b, 7, 60'000);
  CHECK(got.lo == Approx(-0.41).margin(0.05));
  CHECK(got.hi == Approx(5.02).margin(0.05));
  CHECK(bootstrap_difference(a, b, 7, 60'000) == got);
  const Interval turned = bootstrap_difference(b, a, 7, 60'000);
  CHECK(turned.lo == Approx(-got.hi).margin(0.05));
  CHECK(bootstrap_difference(Values{2}, Values{1}, 1) == Interval{1, 1});
}

TEST_CASE(
    "BCa is the percentile interval where nothing is biased or skewed, and shifts where it is") {
  Values resampled(10'001);
  std::iota(resampled.begin(), resampled.end(), 0.0);
  const Interval plain = bca_interval(resampled, 5000, 0);
  CHECK(plain.lo == Approx(250));
  CHECK(plain.hi == Approx(9750));
  // z0 = 0, a = 0.1: Phi(-1.96 / 1.196) and Phi(1.96 / 0.804).
  const Interval skewed = bca_interval(resampled, 5000, 0.1);
  CHECK(skewed.lo == Approx(10'000 * 0.05063).epsilon(1e-3));
  CHECK(skewed.hi == Approx(10'000 * 0.99261).epsilon(1e-3));
  // 97.725 % lie below, z0 = 2: Phi(4 - 1.96), and above all that was drawn.
  const Interval biased = bca_interval(resampled, 9772.5, 0);
  CHECK(biased.lo == Approx(10'000 * 0.97933).epsilon(1e-3));
  CHECK(biased.hi == Approx(10'000).epsilon(1e-3));
  CHECK(acceleration(Values{1, 2, 3}) == 0);
  CHECK(acceleration(Values{2, 2, 5}) == Approx((1 + 1 - 8) / (6 * std::pow(6., 1.5))));
}

TEST_CASE("many tests at once") {
  // 4 p-values: 0.01 * 4, 0.02 * 2, min(0.03 * 4 / 3, 0.04), 0.04.
  const Values adjusted = adjust_p_values(Values{0.04, 0.01, 0.03, 0.02});
  for (const double p : adjusted) CHECK(p == Approx(0.04));
  CHECK(adjust_p_values(Values{0.5, 0.001}) == Values{0.5, 0.002});
  CHECK(adjust_p_values(Values{0.9, 0.8, 1}) == Values{1, 1, 1});
  CHECK(adjust_p_values({}).empty());
  CHECK_THROWS_AS(adjust_p_values(Values{0.5, 1.5}), Error);
  CHECK_THROWS_AS(adjust_p_values(Values{std::nan("")}), Error);
}

TEST_CASE("derivatives of log Gamma") {
  CHECK(digamma(1) == Approx(-0.57721566490153286));  // Euler's constant
  CHECK(digamma(4) == Approx(digamma(1) + 1 + 1. / 2 + 1. / 3));
  CHECK(trigamma(1) == Approx(std::numbers::pi * std::numbers::pi / 6));
  CHECK(trigamma(3) == Approx(trigamma(1) - 1 - 1. / 4));
}

TEST_CASE("how alike cells' variances are is found again") {
  constexpr double kDof = 8;
  std::mt19937_64 random(5);
  std::chi_squared_distribution<double> of_cell(kDof);
  const auto prior = [&](double dof, double variance, int count) {
    std::chi_squared_distribution<double> of_sweep(dof);
    std::vector<Variance> cells;
    for (int i = 0; i < count; ++i)
      cells.push_back({variance * dof / of_sweep(random) * of_cell(random) / kDof, kDof});
    return prior_of(cells);
  };
  for (const double dof : {4.0, 16.0}) {
    const Variance found = prior(dof, 3e-4, 20'000);
    CHECK(found.dof == Approx(dof).epsilon(0.1));
    CHECK(found.value == Approx(3e-4).epsilon(0.03));
  }
  // Cells that differ by chance alone have one variance.
  const Variance same = prior(1e9, 2, 20'000);
  CHECK(same.dof > 300);
  CHECK(same.value == Approx(2).epsilon(0.03));
  CHECK(std::isinf(prior_of(std::vector<Variance>(5, {7, kDof})).dof));
  CHECK(moderated({100, kDof}, {7, std::numeric_limits<double>::infinity()}).value == 7);
  // (4 * 1 + 8 * 10) / 12
  const Variance between = moderated({10, 8}, {1, 4});
  CHECK((between.value == 7 && between.dof == 12));
  // Too few to learn from, and what has no logarithm.
  CHECK(prior_of(std::vector<Variance>(3, {7, kDof})).dof == 0);
  CHECK(prior_of(std::vector<Variance>{{0, 8}, {0, 8}, {1, 8}, {2, 8}, {3, 8}}).dof == 0);
  CHECK(moderated({10, 8}, {}).value == 10);
}

TEST_CASE("the order of growth is found again") {
  const Values sizes{1, 2, 4, 8, 16, 32, 64, 128};
  const std::pair<const char*, double (*)(double)> orders[] = {
      {"1", [](double) { return 500.0; }},
      {"log n", [](double n) { return 20 + 300 * std::log2(n); }},
      {"n", [](double n) { return 2000 + 150 * n; }},
      {"n log n", [](double n) { return 1 + 7 * n * std::log2(n); }},
      {"n^2", [](double n) { return 5 + 3 * n * n; }},
      {"n^3", [](double n) { return 2 * n * n * n; }}};
  std::mt19937_64 random(4);
  for (const auto& [name, time] : orders) {
    Values exact, noisy;
    for (const double n : sizes) {
      exact.push_back(time(n));
      noisy.push_back(time(n) * (1 + 0.01 * (static_cast<double>(random() % 3) - 1)));
    }
    const auto growth = fit_growth(sizes, exact), near = fit_growth(sizes, noisy);
    REQUIRE((growth && near));
    CHECK(growth->model == name);
    CHECK(growth->rms_pct < 1e-6);
    CHECK(near->model == name);
    CHECK(near->rms_pct < 1.5);
  }
  const auto linear = fit_growth(sizes, Values{2150, 2300, 2600, 3200, 4400, 6800, 11600, 21200});
  REQUIRE(linear);
  CHECK(linear->a == Approx(2000));
  CHECK(linear->b == Approx(150));
  // Of orders that fit worse by more than a tenth, none is taken for being simpler.
  CHECK(fit_growth(Values{1, 2, 3, 4}, Values{995, 985, 995, 1025}).value().model == "n^3");
  CHECK_FALSE(fit_growth(Values{4, 4, 8}, Values{1, 2, 3}));  // two sizes fit anything
  CHECK_FALSE(fit_growth(Values{1, 2, 4}, Values{1, 0, 3}));
  CHECK_FALSE(fit_growth(Values{1, 2, 4}, Values{1, 2}));
  CHECK(fit_growth(sizes, Values{8, 7, 6, 5, 4, 3, 2, 1}).value().b == 0);  // time does not shrink
}

}  // namespace
}  // namespace wide::bench
