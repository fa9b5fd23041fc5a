// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// When `--stop` stops, and how often the verdict that it leaves is false: on seeded times.
#include "bench/run/known.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "bench/run/evaluate.hpp"
#include "bench/statistics/settled.hpp"
#include "bench/statistics/stop_rule.hpp"

namespace wide::bench {
namespace {

constexpr double kTarget = 0.005;

RunnerResult runner(const std::string& name) {
  RunnerResult r;
  r.name = name;
  r.measurements.resize(1);
  return r;
}

void add_round(RunnerResult& r, double time_ns) {
  Measurement& m = r.measurements[0];
  m.samples_round.push_back(std::ssize(m.samples_ns));
  m.samples_ns.push_back(time_ns);
}

struct Outcome {
  int verdicts = 0;    ///< "faster" or "slower", of equal times
  int64_t rounds = 0;  ///< of all trials
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Of 200 cases, each of at most 500 rounds with one sample. The strategy's times deviate from the
/// baseline's by what is drawn.
Outcome outcome_of(const std::string& stop, const std::function<double(std::mt19937_64&)>& draw) {
  std::mt19937_64 random(5);
  Outcome outcome;
  for (int trial = 0; trial < 200; ++trial) {
    RunnerResult strategy = runner("wide"), baseline = runner("loop");
    const StopRule rule{12, 12, 500, 15, stop, 0, true};
    const std::vector<double>& times = strategy.measurements[0].samples_ns;
    const auto is_settled = [&] {
      if (stop == "ci") return are_known({&strategy, 1}, {&baseline, 1}, 1, kTarget);
      if (stop == "stdrel") return relative_noise_pct(times) <= 100 * kTarget;
      return stop == "count" || is_entropy_settled(times);
    };
    StopState state;
    while (stop_reason(rule, state, is_settled).empty()) {
      add_round(strategy, 1000 * std::exp(draw(random)));
      add_round(baseline, 1000);
      ++state.rounds, ++state.fewest_samples, ++state.most_samples;
    }
    const std::string verdict = find_speedups({&strategy, 1}, {&baseline, 1}, 1)[0].verdict;
    outcome.verdicts += verdict == "faster" || verdict == "slower" ? 1 : 0;
    outcome.rounds += state.rounds;
  }
  return outcome;
}

std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  return out << o.verdicts << " verdicts, " << o.rounds << " rounds";
}

TEST_CASE("how often a criterion leaves a false verdict, and after how many rounds") {
  // Exactly: bench/README.md says these numbers.
  std::normal_distribution<double> normal;
  const auto one_mode = [&](std::mt19937_64& random) { return 0.01 * normal(random); };
  const auto two_modes = [&](std::mt19937_64& random) {
    return (random() % 2 == 0 ? 0.02 : -0.02) + 0.002 * normal(random);
  };
  const auto outliers = [&](std::mt19937_64& random) {
    return 0.005 * normal(random) + (random() % 10 == 0 ? 0.2 : 0);
  };
  CHECK(outcome_of("count", two_modes) == Outcome{8, 2400});
  CHECK(outcome_of("stdrel", two_modes) == Outcome{8, 100'000});
  CHECK(outcome_of("entropy", two_modes) == Outcome{8, 28'448});
  CHECK(outcome_of("ci", two_modes) == Outcome{12, 96'738});
  CHECK(outcome_of("ci", one_mode) == Outcome{0, 5454});
  CHECK(outcome_of("ci", outliers) == Outcome{0, 3044});
}

TEST_CASE("speedups are known where drift keeps times unknown") {
  RunnerResult strategy = runner("wide"), baseline = runner("loop");
  for (int round = 0; round < 12; ++round) {
    add_round(strategy, 1000 + 50 * round);
    add_round(baseline, 2000 + 100 * round);
  }
  CHECK(are_known({&strategy, 1}, {&baseline, 1}, 1, kTarget));
  CHECK_FALSE(are_known({&strategy, 1}, {}, 1, kTarget));
  CHECK(are_known({&strategy, 1}, {}, 1, 1));
}

}  // namespace
}  // namespace wide::bench
