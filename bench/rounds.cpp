// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "bench/evaluate.hpp"
#include "bench/interrupt.hpp"
#include "bench/statistics/statistics.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpShare = 0.1;  // of the time limit, at most

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void warm_up(const std::vector<Contender*>& contenders, double limit_s, const Guard& guard) {
  const auto start = Clock::now();
  do {
    for (Contender* contender : contenders) guard(*contender, [&] { contender->warm_up(); });
  } while (seconds_since(start) < limit_s && !is_interrupted());
}

StopState state_of(const std::vector<Contender*>& contenders) {
  StopState state;
  for (const Contender* contender : contenders) {
    if (contender->result.status != Status::ok) continue;
    for (const Measurement& m : contender->result.measurements) {
      const auto count = static_cast<int64_t>(m.samples_ns.size());
      state.fewest_samples =
          state.most_samples == 0 ? count : std::min(state.fewest_samples, count);
      state.most_samples = std::max(state.most_samples, count);
    }
  }
  state.is_interrupted = is_interrupted();
  return state;
}

/// All medians are known to the target, or all speedups are: drift widens the former alone.
bool is_settled(const std::vector<Contender*>& contenders, const RunConfig& config) {
  const double target = config.target_ci_pct / 100;
  std::vector<RunnerResult> strategies, baselines;
  bool are_medians_narrow = true;
  for (const Contender* contender : contenders) {
    if (contender->result.status != Status::ok) continue;
    (contender->is_baseline() ? baselines : strategies).push_back(contender->result);
    for (const Measurement& m : contender->result.measurements) {
      const Interval i = bootstrap_median(m.samples_ns, config.seed);
      are_medians_narrow = are_medians_narrow && i.hi - i.lo <= 2 * target * median(m.samples_ns);
    }
  }
  if (are_medians_narrow) return true;
  const std::vector<Speedup> speedups = find_speedups(strategies, baselines, config.seed);
  const auto is_narrow = [&](const Speedup& s) {
    return s.ci_lo && *s.ci_hi - *s.ci_lo <= 2 * target * *s.speedup_ratio;
  };
  return !speedups.empty() && std::all_of(speedups.begin(), speedups.end(), is_narrow);
}

}  // namespace

void time_in_rounds(std::vector<Contender*> contenders, const Timing& timing, const Guard& guard) {
  const RunConfig& config = timing.config;
  const auto start = Clock::now();
  if (contenders.empty() || is_interrupted()) return;
  warm_up(contenders, std::min(config.warmup_s, kWarmUpShare * timing.limit_s), guard);
  int64_t measurements = 0;
  for (Contender* contender : contenders) {
    guard(*contender, [&] { contender->make_samplers(timing.regimes, timing.timer_quantum_ns); });
    measurements += contender->num_measurements();
  }
  std::shuffle(contenders.begin(), contenders.end(), std::mt19937_64(config.order_seed));
  const StopRule rule{config.rounds, config.min_samples, config.max_samples,
                      std::max(0.0, timing.limit_s - seconds_since(start))};
  const auto first_round = Clock::now();
  std::string reason;
  for (int64_t round = 0; reason.empty(); ++round) {
    for (Contender* contender : contenders) {
      if (is_interrupted()) break;
      guard(*contender, [&] { contender->sample_block(round, rule, measurements); });
    }
    std::reverse(contenders.begin(), contenders.end());
    StopState state = state_of(contenders);
    if (state.most_samples == 0 && !state.is_interrupted) return;  // nothing can be timed
    state.rounds = round + 1;
    state.elapsed_s = seconds_since(first_round);
    reason = stop_reason(rule, state, [&] { return is_settled(contenders, config); });
  }
  for (Contender* contender : contenders) {
    for (Measurement& m : contender->result.measurements) {
      m.stop_reason = reason;
      m.walltime_s = seconds_since(first_round);
    }
  }
}

}  // namespace wide::bench
