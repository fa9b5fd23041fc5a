// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The gate of comparisons: its rules by hand, and its errors on synthetic sweeps whose truth is
// known. 48 cells, five runs a side that take turns (A B B A ..), 121 samples a run; the deviation
// between runs is 1 %, the samples' 3 %, and the machine drifts by 2 % in the course of a sweep.
#include "bench/compare/gate.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numbers>
#include <random>

#include "bench/statistics/distributions.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;

constexpr size_t kCells = 48;
constexpr int kSweeps = 1000, kRunsOfSide = 5, kRunsOfSweep = 2 * kRunsOfSide;
constexpr double kBetweenRuns = 0.01, kSample = 0.03, kDrift = 0.02;

/// One sweep at a time; candidates of cell 0 take `factor` times as long.
class Sweeps {
 public:
  explicit Sweeps(uint64_t seed) : random_(seed) {}

  /// The first `noisy_cells` deviate so many times as much between runs.
  void next(double factor, size_t noisy_cells = 0, double times_noisier = 1) {
    base.assign(kCells, {});
    candidate.assign(kCells, {});
    const double phase = 2 * std::numbers::pi * uniform_(random_);
    for (int run = 0; run < kRunsOfSweep; ++run) {
      const bool is_candidate = run % 4 == 1 || run % 4 == 2;
      const double turn = 2 * std::numbers::pi * run / kRunsOfSweep;
      const double drift = 1 + kDrift / 2 * std::sin(turn + phase);
      for (size_t cell = 0; cell < kCells; ++cell) {
        const double deviation = kBetweenRuns * (cell < noisy_cells ? times_noisier : 1);
        const double time = 1000 * drift * (1 + deviation * normal_(random_)) *
                            (is_candidate && cell == 0 ? factor : 1);
        (is_candidate ? candidate : base)[cell].runs.push_back(time * median_of_samples());
      }
    }
    floor_pct_ = noise_floor_pct(base, candidate).value();
    p_ = change_p_values(base, candidate, true);
  }
  Verdict verdict_of(size_t cell, IntervalMethod method) const {
    const GateOptions options{.noise_floor_pct = floor_pct_, .interval = method, .p = p_[cell]};
    return judge(base[cell], candidate[cell], options).verdict;
  }
  /// Where it does not, there is no alarm, whatever the interval, which takes its time.
  bool exceeds_floor(size_t cell) const {
    double change = 0;
    for (const double time : candidate[cell].runs) change += std::log(time) / kRunsOfSide;
    for (const double time : base[cell].runs) change -= std::log(time) / kRunsOfSide;
    return std::fabs(change) > std::log1p(floor_pct_ / 100);
  }

  std::vector<Side> base, candidate;

 private:
  /// Of 121 normal samples, drawn at once: its place among them is Beta(61, 61) distributed.
  double median_of_samples() {
    const double x = half_(random_), y = half_(random_);
    return 1 + kSample * normal_quantile(x / (x + y));
  }

  double floor_pct_ = 0;
  std::vector<std::optional<double>> p_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::gamma_distribution<double> half_{61};
};

constexpr IntervalMethod kMethods[] = {IntervalMethod::welch, IntervalMethod::bootstrap};

/// Sweeps of 1,000, by method. Exactly: README.md and bench/README.md say these numbers.
using Counts = std::vector<int>;

/// In which nothing changed and some cell is said to have.
void check_alarms(uint64_t seed, size_t noisy_cells, double times_noisier, const Counts& expected) {
  Sweeps sweeps(seed);
  Counts alarms(std::size(kMethods));
  for (int i = 0; i < kSweeps; ++i) {
    sweeps.next(1, noisy_cells, times_noisier);
    bool is_alarm[std::size(kMethods)] = {};
    for (size_t cell = 0; cell < kCells; ++cell) {
      if (!sweeps.exceeds_floor(cell)) continue;
      for (size_t m = 0; m < std::size(kMethods); ++m) {
        const Verdict v = sweeps.verdict_of(cell, kMethods[m]);
        is_alarm[m] = is_alarm[m] || v == Verdict::slower || v == Verdict::faster;
      }
    }
    for (size_t m = 0; m < std::size(kMethods); ++m) alarms[m] += is_alarm[m] ? 1 : 0;
  }
  INFO(noisy_cells << " noisy cells");
  CHECK(alarms == expected);
}

TEST_CASE("where nothing changed, few sweeps raise an alarm") {
  check_alarms(1, 0, 1, {1, 1});
  // The floor is the median cell's: noisier cells exceed it, and by p are known for what they are.
  check_alarms(3, 12, 4, {6, 6});
  check_alarms(4, 24, 5, {8, 8});
}

TEST_CASE("a lone slowdown or speedup is found") {
  const auto is_found = [](double factor, Verdict verdict, const Counts& expected) {
    Sweeps sweeps(2);
    Counts found(std::size(kMethods));
    for (int i = 0; i < kSweeps; ++i) {
      sweeps.next(factor);
      for (size_t m = 0; m < std::size(kMethods); ++m)
        found[m] += sweeps.verdict_of(0, kMethods[m]) == verdict ? 1 : 0;
    }
    INFO("factor " << factor);
    CHECK(found == expected);
  };
  is_found(1.05, Verdict::slower, {965, 996});
  is_found(1.10, Verdict::slower, {kSweeps, kSweeps});
  is_found(1 / 1.10, Verdict::faster, {kSweeps, kSweeps});
}

/// Five runs, each a little off.
Side runs_about(double value, double spread = 0.001) {
  Side side;
  for (int i = -2; i <= 2; ++i) side.runs.push_back(value * (1 + spread * i));
  return side;
}

TEST_CASE("verdicts of five runs a side") {
  const auto verdict = [](double base, double candidate, const GateOptions& options,
                          double spread = 0.001) {
    return judge(runs_about(base, spread), runs_about(candidate, spread), options);
  };
  const GateOptions time{Better::lower, 1.5, 0}, rate{Better::higher, 1.5, 0};
  CHECK(verdict(100, 103, time).verdict == Verdict::slower);
  CHECK(verdict(100, 97, time).verdict == Verdict::faster);
  CHECK(verdict(100, 100.5, time).verdict == Verdict::same);
  CHECK(verdict(100, 101.5, time).verdict == Verdict::ambiguous);
  CHECK(verdict(100, 101.5, time).reason == "wide_interval");
  // The direction is the metric's, the sign of the change is not.
  CHECK(verdict(100, 103, rate).verdict == Verdict::faster);
  CHECK(verdict(100, 97, rate).verdict == Verdict::slower);
  CHECK(verdict(100, 97, rate).change_pct == Approx(-3).epsilon(1e-3));
  const Judgement noisy = verdict(100, 103, {Better::lower, 1.5, 4});
  CHECK((noisy.verdict == Verdict::ambiguous && noisy.reason == "noise_floor"));
  const GateOptions at_least{.threshold_pct = 1.5, .min_effect_pct = 4};
  CHECK(verdict(100, 103, at_least).reason == "small_effect");
  CHECK(verdict(100, 97, at_least).verdict == Verdict::ambiguous);
  CHECK(verdict(100, 105, at_least).verdict == Verdict::slower);
  CHECK(verdict(100, 100.5, at_least).verdict == Verdict::same);
  // Ends of the interval belong to the change's sign, whichever direction is better.
  for (const GateOptions& options : {time, rate}) {
    const Judgement j = verdict(100, 103, options);
    CHECK(j.change_pct == Approx(3).epsilon(1e-3));
    CHECK((*j.ci_lo_pct < j.change_pct && j.change_pct < *j.ci_hi_pct));
    CHECK(*j.ci_lo_pct > 2);
  }
  const Judgement exact = verdict(100, 100, time, 0);
  CHECK((exact.verdict == Verdict::same && exact.change_pct == 0 && exact.ci_hi_pct == 0));
}

TEST_CASE("the bootstrap's interval decides where it is asked for, and is the same every time") {
  const GateOptions options{.interval = IntervalMethod::bootstrap};
  const Side base = runs_about(100, 0.01), candidate = runs_about(103.5, 0.01);
  const Judgement j = judge(base, candidate, options), welch = judge(base, candidate, {});
  CHECK((welch.verdict == Verdict::ambiguous && j.verdict == Verdict::slower));
  CHECK((*j.ci_lo_pct > *welch.ci_lo_pct && *j.ci_hi_pct < *welch.ci_hi_pct));
  CHECK(j.ci_lo_pct == judge(base, candidate, options).ci_lo_pct);
  CHECK(judge(runs_about(100), runs_about(100), options).verdict == Verdict::same);
  const Judgement exact = judge(runs_about(100, 0), runs_about(100, 0), options);
  CHECK((exact.verdict == Verdict::same && exact.ci_lo_pct == 0 && exact.ci_hi_pct == 0));
}

TEST_CASE("a change of the clock alone is no change of the code") {
  const auto judged = [](double times_slower, double times_clock, size_t runs = 5) {
    Side base = runs_about(100, 0.001), candidate = runs_about(100 * times_slower, 0.001);
    for (Side* side : {&base, &candidate}) {
      side->runs.resize(runs);
      side->best = side->q3 = side->runs;
      side->sm_mhz.assign(runs, side == &base ? 1500 : 1500 * times_clock);
    }
    return judge(base, candidate, {Better::lower, 1.5, 0});
  };
  for (const size_t runs : {size_t{5}, size_t{3}}) {
    INFO(runs << " runs a side");
    const Judgement clock = judged(1.05, 1 / 1.05, runs);
    CHECK((clock.verdict == Verdict::ambiguous && clock.reason == "clock_change"));
    CHECK(*clock.cycles_change_pct == Approx(0).margin(0.2));
    CHECK(judged(1 / 1.05, 1.05, runs).reason == "clock_change");
    // Slower although the clock is higher, or slower by more than the clock is.
    CHECK(judged(1.05, 1.03, runs).verdict == Verdict::slower);
    CHECK(judged(1.10, 1 / 1.05, runs).verdict == Verdict::slower);
    CHECK(judged(1.05, 1 / 1.005, runs).verdict == Verdict::slower);  // clocks are the same
  }
  Side base = runs_about(100, 0.001), candidate = runs_about(105, 0.001);
  base.sm_mhz = {1500, 1500, 1500, 1500, 1500};  // the candidate's are not known
  const Judgement unknown = judge(base, candidate, {Better::lower, 1.5, 0});
  CHECK((unknown.verdict == Verdict::slower && !unknown.cycles_change_pct));
}

TEST_CASE("severity follows the worse end of the interval") {
  const auto severity = [](double candidate, Better better = Better::lower) {
    return judge(runs_about(100), runs_about(candidate), {better, 1.5, 0}).severity;
  };
  CHECK(severity(103) == Severity::none);  // slower, but below every band
  CHECK(severity(104.9) == Severity::mild);
  CHECK(severity(109) == Severity::mild);
  CHECK(severity(109.9) == Severity::moderate);
  CHECK(severity(119) == Severity::moderate);
  CHECK(severity(125) == Severity::severe);
  CHECK(severity(80) == Severity::improvement);
  CHECK(severity(100) == Severity::none);
  CHECK(severity(80, Better::higher) == Severity::severe);
}

TEST_CASE("few runs speak where their ranges are apart, and never say the same") {
  const auto side = [](double median, double best, double q3) {
    return Side{{median}, {best}, {q3}};
  };
  const GateOptions time{Better::lower, 1.5, 0};
  const Side base = side(100, 98, 101);
  const auto reason = [&](const Side& candidate, const GateOptions& options) {
    const Judgement j = judge(base, candidate, options);
    CHECK_FALSE(j.ci_lo_pct);
    return std::string(to_string(j.verdict)) + " " + std::string(j.reason);
  };
  CHECK(reason(side(104, 102, 105), time) == "SLOWER disjoint_ranges");
  CHECK(reason(side(104, 101.4, 105), time) == "AMBIGUOUS few_runs");  // apart by 0.4 %
  CHECK(reason(side(95, 93, 97), time) == "FASTER disjoint_ranges");
  CHECK(reason(side(100, 98, 101), time) == "AMBIGUOUS few_runs");
  CHECK(reason(side(104, 102, 105), {Better::lower, 5, 0}) == "AMBIGUOUS small_change");
  CHECK(reason(side(104, 102, 105), {Better::lower, 1.5, 6}) == "AMBIGUOUS small_change");
  CHECK(reason(side(104, 102, 105), {.noise_floor_pct = 0, .min_effect_pct = 6}) ==
        "AMBIGUOUS small_change");
  // Samples of one run know nothing of how runs differ.
  CHECK(reason(side(104, 102, 105), {}) == "AMBIGUOUS unknown_noise");
  CHECK(reason(side(130, 128, 131), {}) == "AMBIGUOUS unknown_noise");
  // A rate's best is its largest.
  CHECK(judge(side(100, 102, 99), side(95, 97, 94), {Better::higher, 1.5, 0}).verdict ==
        Verdict::slower);
  CHECK(judge(base, side(130, 128, 131), time).severity == Severity::severe);
}

TEST_CASE("the noise floor is two deviations between runs of the median cell") {
  const std::vector<Side> base{runs_about(100, 0.01), runs_about(100, 0.01), runs_about(7, 0.3)};
  const std::vector<Side> few{{{100}, {}, {}}, {{100}, {}, {}}, {{100}, {}, {}}};
  // Deviation of -2 % .. 2 %: 1.58 %.
  CHECK(noise_floor_pct(base, base).value() == Approx(3.2).epsilon(0.02));
  CHECK_FALSE(noise_floor_pct(base, few));
}

}  // namespace
}  // namespace wide::bench
