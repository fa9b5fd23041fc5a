// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Statistics against values worked out by hand, against the plain bootstrap and against seeded
// distributions whose median is known; the stop rule without a clock.
#include "bench/statistics/statistics.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "bench/statistics/order.hpp"
#include "bench/statistics/stop_rule.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;

TEST_CASE("quantiles are those of type 7") {
  const std::vector<double> sorted{1, 2, 4, 8};
  CHECK(quantile(sorted, 0) == 1);
  CHECK(quantile(sorted, 0.25) == 1.75);  // place 0.75: 1 + 0.75 * (2 - 1)
  CHECK(quantile(sorted, 0.5) == 3);
  CHECK(quantile(sorted, 0.9) == Approx(6.8));  // place 2.7: 4 + 0.7 * (8 - 4)
  CHECK(quantile(sorted, 1) == 8);
  CHECK(quantile(std::vector<double>{5}, 0.95) == 5);
}

TEST_CASE("statistics of five samples, by hand") {
  // Mean 28 / 5; squares of deviations from it sum to 81.2; deviations from the median: 4 3 0 3 7.
  const Statistics s = describe_samples(std::vector<double>{1, 2, 5, 8, 12});
  CHECK(s.n == 5);
  CHECK_FALSE(s.ci_is_of_rounds);
  CHECK(s.mean_ns == Approx(5.6));
  CHECK(s.stdev_ns == Approx(std::sqrt(81.2 / 4)));
  CHECK(s.cv_pct == Approx(100 * std::sqrt(20.3) / 5.6));
  CHECK(s.min_ns == 1);
  CHECK(s.p5_ns == Approx(1.2));
  CHECK(s.q1_ns == 2);
  CHECK(s.median_ns == 5);
  CHECK(s.q3_ns == 8);
  CHECK(s.p95_ns == Approx(11.2));
  CHECK(s.max_ns == 12);
  CHECK(s.mad_ns == 3);
  CHECK(s.p99_ns == Approx(11.84));
  CHECK(s.iqr_ns == 6);
  CHECK(s.ci_mean_lo_ns.value() == Approx(5.6 - 2.776445105 * std::sqrt(20.3 / 5)));
  CHECK(s.ci_mean_hi_ns.value() == Approx(5.6 + 2.776445105 * std::sqrt(20.3 / 5)));
  CHECK(s.outliers == Outliers{});
  // (-4.6 * -3.6 + -3.6 * -.6 + -.6 * 2.4 + 2.4 * 6.4) / 81.2
  CHECK(s.autocorr_lag1.value() == Approx(32.64 / 81.2));
  CHECK(s.ci_lo_ns >= 1);
  CHECK(s.ci_lo_ns < 5);
  CHECK(s.ci_hi_ns > 5);
  CHECK(s.ci_hi_ns <= 12);
}

TEST_CASE("statistics of no, one, two, equal and wild samples") {
  CHECK(describe_samples({}).n == 0);
  CHECK(median({}) == 0);
  const Statistics one = describe_samples(std::vector<double>{7});
  CHECK((one.median_ns == 7 && one.stdev_ns == 0 && one.ci_lo_ns == 7 && one.ci_hi_ns == 7));
  CHECK_FALSE((one.ci_mean_lo_ns || one.autocorr_lag1));
  const Statistics two = describe_samples(std::vector<double>{2, 4});
  CHECK((two.median_ns == 3 && two.mad_ns == 1 && two.ci_lo_ns == 2 && two.ci_hi_ns == 4));
  const Statistics equal = describe_samples(std::vector<double>(40, 3.5));
  CHECK((equal.stdev_ns == 0 && equal.ci_lo_ns == 3.5 && equal.ci_hi_ns == 3.5));
  CHECK(describe_samples(std::vector<double>(4, 0.0)).cv_pct == 0);
  std::vector<double> wild(50, 100.0);
  wild[7] = 100'000;
  const Statistics robust = describe_samples(wild);
  CHECK((robust.median_ns == 100 && robust.ci_hi_ns == 100 && robust.mad_ns == 0));
  CHECK(robust.mean_ns > 2000);
  CHECK(robust.outliers == Outliers{0, 0, 0, 1});
  CHECK_FALSE(equal.autocorr_lag1);
}

TEST_CASE("samples that are no times are refused") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
    CHECK_THROWS_AS(describe_samples(std::vector<double>{1, bad, 2}), Error);
  }
}

TEST_CASE("drawing order statistics is the same as drawing values") {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(100, 10);
  for (const size_t n : {3u, 4u, 12u, 31u, 60u}) {
    std::vector<double> values(n);
    for (double& value : values) value = normal(random);
    const Interval expected = bootstrap(values, median, 5, 20'000);
    const Interval got = bootstrap_median(values, 6, 20'000);
    // Ends are order statistics: where a quantile falls between two, either may come out.
    std::sort(values.begin(), values.end());
    const double step = 20.0 / static_cast<double>(n);
    INFO("n = " << n);
    CHECK(std::fabs(got.lo - expected.lo) <= step);
    CHECK(std::fabs(got.hi - expected.hi) <= step);
    CHECK(bootstrap_median(values, 6, 20'000).lo == got.lo);  // seeded
  }
}

TEST_CASE("a resample's median has the binomial distribution of theory") {
  // Of 5 draws from {1..5}, the median is 1 where at least 3 are 1: 10 * .2^3 * .8^2 + 5 * .2^4 *
  // .8 + .2^5 = 0.05792, more than 2.5 %, so the interval is the whole range.
  CHECK(bootstrap_median(std::vector<double>{1, 2, 3, 4, 5}, 1).lo == 1);
  CHECK(bootstrap_median(std::vector<double>{1, 2, 3, 4, 5}, 1).hi == 5);
  // Of 11 draws from {1..11}, P(median <= 2) = P(Bin(11, 2/11) >= 6) = 0.0072 and
  // P(median <= 3) = P(Bin(11, 3/11) >= 6) = 0.0512: the 2.5 % point is 3.
  std::vector<double> eleven(11);
  std::iota(eleven.begin(), eleven.end(), 1.0);
  CHECK(bootstrap_median(eleven, 3, 20'000).lo == 3);
  CHECK(bootstrap_median(eleven, 3, 20'000).hi == 9);
}

TEST_CASE("the interval covers the true median about as often as it says") {
  std::mt19937_64 random(42);
  std::normal_distribution<double> normal(0, 0.02);
  for (const size_t n : {12u, 30u, 120u}) {
    int covered = 0, pairs_covered = 0;
    constexpr int kTrials = 1000;  // standard error 0.7 %
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> times(n), base(n), mine(n);
      for (size_t i = 0; i < n; ++i) {
        times[i] = 1000 * std::exp(normal(random));
        const double drift = 1 + static_cast<double>(i) / static_cast<double>(n);
        base[i] = 3000 * drift * std::exp(normal(random));
        mine[i] = 1000 * drift * std::exp(normal(random));
      }
      const Interval interval = bootstrap_median(times, static_cast<uint64_t>(trial));
      covered += interval.lo <= 1000 && 1000 <= interval.hi ? 1 : 0;
      const auto ratio = paired_ratio(base, mine, static_cast<uint64_t>(trial));
      pairs_covered += ratio->interval.lo <= 3 && 3 <= ratio->interval.hi ? 1 : 0;
    }
    INFO("n = " << n);
    CHECK(covered > 0.92 * kTrials);
    CHECK(covered < 0.97 * kTrials);
    CHECK(pairs_covered > 0.92 * kTrials);
    CHECK(pairs_covered < 0.97 * kTrials);
  }
}

/// Of 1,000 speedups' intervals, those that contain the true one. Neighbouring rounds deviate
/// alike.
int num_covered(size_t rounds, double correlation) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  int covered = 0;
  for (uint64_t trial = 0; trial < 1000; ++trial) {
    std::vector<double> base, mine(rounds, 1000);
    double deviation = normal(random);
    for (size_t i = 0; i < rounds; ++i) {
      base.push_back(3000 * std::exp(0.01 * deviation));
      deviation =
          correlation * deviation + std::sqrt(1 - correlation * correlation) * normal(random);
    }
    const auto ratio = paired_ratio(base, mine, trial);
    covered += ratio->interval.lo <= 3 && 3 <= ratio->interval.hi ? 1 : 0;
  }
  return covered;
}

TEST_CASE("how often an interval contains the true speedup") {
  // Exactly: bench/README.md says these numbers.
  CHECK(num_covered(8, 0) == 985);
  CHECK(num_covered(12, 0) == 938);
  CHECK(num_covered(13, 0) == 895);
  CHECK(num_covered(24, 0) == 939);
  CHECK(num_covered(12, 0.5) == 834);
  CHECK(num_covered(24, 0.5) == 903);
  CHECK(num_covered(96, 0.5) == 963);
}

TEST_CASE("what alike neighbours are worth") {
  const auto count = [](double correlation, size_t n) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    std::vector<double> series{normal(random)};
    while (series.size() < n) {
      series.push_back(correlation * series.back() +
                       std::sqrt(1 - correlation * correlation) * normal(random));
    }
    return static_cast<double>(effective_count(series));
  };
  CHECK(count(0, 4000) == 4000);
  CHECK(count(-0.5, 4000) == 4000);  // they may differ more than others, but no interval shrinks
  CHECK(count(0.5, 4000) == Approx(4000 / 3.).epsilon(0.1));
  CHECK(count(0.8, 4000) == Approx(4000 / 9.).epsilon(0.15));
  // Ranks 1 to 6: r = 8.75 / 17.5, and without its bias (6 r + 1) / 3, above 1.
  CHECK(effective_count(std::vector<double>{1, 2, 3, 4, 5, 600}) == 1);
  // r = 0.25 and 0.4 of ranks in order: only the latter is rare in independent values.
  CHECK(effective_count(std::vector<double>{1, 2, 3, 4}) == 4);
  CHECK(effective_count(std::vector<double>{1, 2, 3, 4, 5}) == 1);
  CHECK(effective_count(std::vector<double>{}) == 0);
  CHECK(effective_count(std::vector<double>(9, 7.0)) == 9);
}

TEST_CASE("a series whose neighbours are alike has a wider interval, whoever draws it") {
  std::vector<double> series;
  std::vector<int64_t> rounds(24);
  std::iota(rounds.begin(), rounds.end(), 0);
  for (int i = 0; i < 24; ++i) series.push_back(i);
  const Interval plain = bootstrap_median(series, 1);
  CHECK(plain.lo > 5);
  CHECK(plain.hi < 18);
  for (const Interval wide :
       {bootstrap_median_of_series(series, 1), bootstrap_median_of_rounds(series, rounds, 1)}) {
    CHECK(wide.lo <= 1);  // as good as one value: about the range
    CHECK(wide.hi >= 22);
  }
}

TEST_CASE("a higher level, a wider interval") {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal(100, 1);
  std::vector<double> values(48), thrice(48, 300);
  std::vector<int64_t> rounds(48);
  std::iota(rounds.begin(), rounds.end(), 0);
  for (double& value : values) value = normal(random);
  const auto widths = [&](double level) {
    const auto ratio = paired_ratio(thrice, values, 1, level)->interval;
    const Interval one = exact_median_interval(values, level);
    const Interval other = bootstrap_median_of_rounds(values, rounds, 1, 20'000, level);
    return std::array{ratio.hi - ratio.lo, one.hi - one.lo, other.hi - other.lo};
  };
  const auto usual = widths(0.95), sure = widths(0.998);
  for (size_t i = 0; i < usual.size(); ++i) CHECK(sure[i] == Approx(1.6 * usual[i]).epsilon(0.3));
}

TEST_CASE("order statistics that hold the median by the binomial distribution") {
  const auto interval = [](int n) {
    std::vector<double> values(static_cast<size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1.0);
    return exact_median_interval(values);
  };
  CHECK(interval(1) == Interval{1, 1});
  CHECK(interval(5) == Interval{1, 5});
  CHECK(interval(8) == Interval{1, 8});           // 2 P(Bin(8, 1/2) <= 1) = 7.0 %
  CHECK(interval(9) == Interval{2, 8});           // 2 P(Bin(9, 1/2) <= 1) = 3.9 %
  CHECK(interval(12) == Interval{3, 10});         // 3.9 %, and one further in 14.6 %
  CHECK(interval(4000) == Interval{1938, 2063});  // 2000.5 +- 1.96 sqrt(4000) / 2
}

TEST_CASE("an interval knows that samples of a round are alike") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 1000, kRounds = 12, kSamples = 10;
  int of_rounds = 0, of_samples = 0, of_mean = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> times;
    std::vector<int64_t> rounds;
    for (int round = 0; round < kRounds; ++round) {
      const double centre = 1000 * (1 + 0.01 * normal(random));
      for (int i = 0; i < kSamples; ++i) {
        times.push_back(centre * (1 + 0.005 * normal(random)));
        rounds.push_back(round);
      }
    }
    const auto holds = [](const Interval& i) { return i.lo <= 1000 && 1000 <= i.hi ? 1 : 0; };
    const auto seed = static_cast<uint64_t>(trial);
    of_rounds += holds(bootstrap_median_of_rounds(times, rounds, seed));
    of_samples += holds(bootstrap_median(times, seed));
    if (trial > 0) continue;
    const Statistics s = describe_samples(times, rounds, seed);
    const Interval same = bootstrap_median_of_rounds(times, rounds, seed, 10'000);
    CHECK((s.ci_is_of_rounds && s.ci_lo_ns == same.lo && s.ci_hi_ns == same.hi));
    of_mean = *s.ci_mean_hi_ns - *s.ci_mean_lo_ns > 6 ? 1 : 0;  // 2 * 2.2 * 10 / sqrt(12) = 12.7
  }
  INFO("of rounds " << of_rounds << ", of samples " << of_samples);
  CHECK(of_rounds > 0.91 * kTrials);
  CHECK(of_samples < 0.65 * kTrials);  // what would be believed without
  CHECK(of_mean == 1);
}

TEST_CASE("drawing rounds of one sample each is drawing samples") {
  std::vector<double> values(31);
  std::vector<int64_t> rounds(31);
  for (int i = 0; i < 31; ++i) values[static_cast<size_t>(i)] = 100 + 13 * i % 31;
  std::iota(rounds.begin(), rounds.end(), 3);
  const Interval expected = bootstrap(values, median, 5, 20'000);
  const Interval got = bootstrap_median_of_rounds(values, rounds, 6, 20'000);
  CHECK(std::fabs(got.lo - expected.lo) <= 1);
  CHECK(std::fabs(got.hi - expected.hi) <= 1);
  // One round says nothing of rounds.
  CHECK(bootstrap_median_of_rounds(values, std::vector<int64_t>(31, 4), 6, 2000) ==
        bootstrap_median(values, 6, 2000));
  // Two rounds: all of one, all of the other, or both.
  const Interval two = bootstrap_median_of_rounds(std::vector<double>{1, 2, 3, 11, 12, 13},
                                                  std::vector<int64_t>{0, 0, 0, 1, 1, 1}, 1);
  CHECK(two == Interval{2, 12});
}

TEST_CASE("paired ratios") {
  const auto ratio = paired_ratio(std::vector<double>{20, 40, 80}, std::vector<double>{10, 10, 10});
  REQUIRE(ratio);
  CHECK(ratio->value == Approx(4));
  CHECK(ratio->pairs == 3);
  CHECK(ratio->interval.lo == Approx(2));
  CHECK(ratio->interval.hi == Approx(8));
  // A zero on either side is no pair.
  const auto fewer = paired_ratio(std::vector<double>{0, 30, 30}, std::vector<double>{10, 0, 10});
  REQUIRE(fewer);
  CHECK(fewer->pairs == 1);
  CHECK_FALSE(paired_ratio(std::vector<double>{0}, std::vector<double>{0}));
  CHECK_FALSE(paired_ratio(std::span<const double>(), std::span<const double>()));
}

TEST_CASE("rounds are paired by their number") {
  const std::vector<double> samples{5, 1, 3, 10, 20, 7};
  const std::vector<int64_t> rounds{0, 0, 0, 2, 2, 3};
  const RoundMedians mine = round_medians(samples, rounds);
  CHECK(mine.rounds == std::vector<int64_t>{0, 2, 3});
  CHECK(mine.medians == std::vector<double>{3, 15, 7});
  const RoundMedians base{{0, 1, 2}, {6, 99, 30}};
  const auto ratio = paired_ratio(base, mine);
  REQUIRE(ratio);
  CHECK(ratio->pairs == 2);
  CHECK(ratio->value == Approx(2));
}

TEST_CASE("what rounds tell") {
  Statistics s;
  s.median_ns = 200;
  describe_rounds({{0, 1, 2, 3}, {196, 198, 202, 212}}, 0.5, s);
  // Slopes 2 3 16/3 4 7 10, their median 4.67: per round of half a second, of 200 ns.
  CHECK(s.trend_pct_per_s.value() == Approx((4 + 16. / 3) / 2 / 200 / 0.5 * 100));
  CHECK(s.between_round_cv_pct.value() == Approx(100 * std::sqrt(152. / 3) / 202));
  REQUIRE(s.normality);
  CHECK(s.normality->test == "shapiro_wilk");
  Statistics none;
  describe_rounds({{0}, {5}}, 0.5, none);
  CHECK_FALSE((none.trend_pct_per_s || none.between_round_cv_pct || none.normality));
  describe_rounds({{0, 1, 2}, {5, 5, 5}}, 0, none);
  CHECK_FALSE((none.trend_pct_per_s || none.normality));
  CHECK(none.between_round_cv_pct == 0);
  std::vector<double> many;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(100, 1);
  for (int i = 0; i < 5001; ++i) many.push_back(normal(random));
  describe_rounds({{}, many}, 1, s);
  CHECK(s.normality.value().test == "anderson_darling");
}

TEST_CASE("verdicts") {
  const auto verdict = [](double lo, double hi, int64_t pairs = 12) {
    return std::string(verdict_of({std::sqrt(lo * hi), {lo, hi}, pairs}));
  };
  CHECK(verdict(1.02, 1.5) == "faster");
  CHECK(verdict(1.005, 1.5) == "ambiguous");
  CHECK(verdict(0.5, 0.9) == "slower");
  CHECK(verdict(0.5, 0.995) == "ambiguous");
  CHECK(verdict(0.995, 1.005) == "same");
  CHECK(verdict(0.9, 1.2) == "ambiguous");
  CHECK(verdict(2, 3, 5) == "ambiguous");
  CHECK(verdict(2, 3, 6) == "faster");
}

TEST_CASE("when a measurement stops") {
  const StopRule rule{12, 30, 5000, 15};
  int asked = 0;
  const auto settled = [&] { return ++asked, true; };
  const auto unsettled = [&] { return ++asked, false; };
  const auto state = [](int64_t rounds, int64_t samples, double elapsed_s) {
    return StopState{rounds, samples, samples, elapsed_s, false};
  };
  CHECK(stop_reason(rule, state(12, 36, 1), settled) == "ci");
  CHECK(stop_reason(rule, state(12, 36, 1), unsettled).empty());
  asked = 0;
  CHECK(stop_reason(rule, state(11, 300, 1), settled).empty());  // rounds
  CHECK(stop_reason(rule, state(12, 29, 1), settled).empty());   // samples
  CHECK(asked == 0);
  CHECK(stop_reason(rule, state(13, 39, 15), unsettled) == "timeout");
  CHECK(stop_reason(rule, state(3, 9, 99), settled).empty());  // never fewer than four rounds
  CHECK(stop_reason(rule, state(4, 12, 99), unsettled) == "timeout");
  // What has come to the criterion by then has not timed out, whenever it was asked last.
  CHECK(stop_reason(rule, state(13, 39, 15), settled) == "ci");
  CHECK(stop_reason(rule, state(11, 300, 15), settled) == "timeout");
  CHECK(stop_reason(rule, state(500, 5000, 1), unsettled) == "max_samples");
  CHECK(stop_reason(rule, {1, 3, 3, 0, true}, unsettled) == "interrupted");
  // A criterion waits for the least time of samples, what bounds the case does not.
  const StopRule long_rule{12, 30, 5000, 15, "ci", 2};
  const auto sampled = [&](double least_s) {
    return stop_reason(long_rule, {12, 36, 36, 10, false, least_s}, settled);
  };
  CHECK(sampled(1.9).empty());
  CHECK(sampled(2) == "ci");
  CHECK(stop_reason(long_rule, state(13, 39, 15), settled) == "timeout");
  CHECK(stop_reason(long_rule, state(500, 5000, 1), settled) == "max_samples");
  // What runs the other way round every second time ends on an even number, but for what can take
  // no more samples.
  StopRule abba = rule;
  abba.in_pairs = true;
  CHECK(stop_reason(abba, state(13, 39, 15), settled).empty());
  CHECK(stop_reason(abba, state(14, 42, 15), unsettled) == "timeout");
  CHECK(stop_reason(abba, state(15, 45, 1), settled).empty());
  CHECK(stop_reason(abba, state(16, 48, 1), settled) == "ci");
  CHECK(stop_reason(abba, state(501, 5000, 1), settled) == "max_samples");
  // Every measurement has its samples, not one of them.
  CHECK(stop_reason(rule, {12, 12, 120, 1, false}, settled).empty());
}

TEST_CASE("whether all is settled is asked ever more rarely") {
  const StopRule rule{12, 30, 100'000, 15};
  int64_t asked = 0;
  for (int64_t rounds = 1; rounds <= 1200; ++rounds) {
    (void)stop_reason(rule, {rounds, 10 * rounds, 10 * rounds, 1, false}, [&] {
      ++asked;
      return false;
    });
  }
  CHECK(asked > 10);
  CHECK(asked < 30);
}

TEST_CASE("how many samples make a block") {
  const StopRule rule{12, 30, 5000, 15};
  CHECK(samples_per_block(rule, 200e-6, 10) == 10);
  CHECK(samples_per_block(rule, 5e-3, 10) == 4);   // 20 ms
  CHECK(samples_per_block(rule, 30e-3, 10) == 3);  // 30 samples in 12 rounds
  CHECK(samples_per_block(rule, 60e-3, 10) == 2);  // 15 s / 12 rounds / 10 = 125 ms
  CHECK(samples_per_block(rule, 10, 10) == 1);
  CHECK(samples_per_block(rule, 0, 10) == 10);
  CHECK(samples_per_block({12, 30, 5000, 0}, 1e-3, 4) == 1);
  CHECK(samples_per_block({12, 30, 60, 15}, 200e-6, 10) == 5);  // twelve rounds, not six
  CHECK(samples_per_block({12, 30, 6, 15}, 200e-6, 10) == 1);
}

}  // namespace
}  // namespace wide::bench
