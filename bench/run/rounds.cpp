// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <span>

#include "bench/nvml/energy.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/run/known.hpp"
#include "bench/statistics/settled.hpp"
#include "bench/timer/seconds.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpShare = 0.2;    // of the time limit, at most
constexpr double kClockShare = 0.2;     // the same until clocks are stable, if that suffices
constexpr double kMaxClockShare = 0.5;  // if it does not

/// Seconds after which waiting for clocks ends. The previous case's clock would be free, but does
/// not apply to this one: work that draws more power is stable at a lower clock, not throttled.
double most_clock_wait_s(double limit_s) {
  const double seeing_s = std::min(kClocksSeen_s, kMaxClockShare * limit_s);
  return std::clamp(kClockShare * limit_s, seeing_s, kMaxClockWarmUp_s);
}

struct WarmUp {
  ThrottleRule throttle;
  double seconds = 0;
};

/// Runs uncounted samples, of the same kind as the counted ones: calls with pauses would leave the
/// device at another clock. Ends after the time and, if clocks are known, when they have settled.
/// Samples are judged by the clock at which they settled.
WarmUp warm_up(const std::vector<Contender*>& contenders, const Timing& timing,
               const Guard& guard) {
  const RunConfig& config = timing.config;
  const double least_s = std::min(config.warmup_s, kWarmUpShare * timing.limit_s);
  const bool waits = timing.monitor != nullptr && config.warmup_s > 0;
  const double most_s = waits ? std::max(least_s, most_clock_wait_s(timing.limit_s)) : least_s;
  ClockStability clocks(config.clock_tol_pct);
  const auto start = Clock::now();
  const auto is_warm = [&] {
    const double elapsed = seconds_since(start);
    return elapsed >= most_s || (elapsed >= least_s && (!waits || clocks.is_stable()));
  };
  do {
    for (Contender* contender : contenders) {
      guard(*contender, [&] { contender->warm_up(); });
      if (!waits) continue;
      const std::optional<double> mhz = timing.monitor->read_clock().sm_mhz;
      if (mhz) clocks.add(seconds_since(start), *mhz);
    }
  } while (!is_warm() && !is_interrupted());
  return {{throttle_policy(config.throttle), config.throttle_pct, clocks.stable_mhz()},
          seconds_since(start)};
}

/// The time of the samples, without the time between them.
double sampled_s(const Measurement& m) {
  const double ns = std::accumulate(m.samples_ns.begin(), m.samples_ns.end(), 0.0);
  return 1e-9 * ns * static_cast<double>(m.iters_per_sample);
}

StopState state_of(const std::vector<Contender*>& contenders) {
  StopState state;
  for (const Contender* contender : contenders) {
    if (contender->result.status != Status::ok) continue;
    for (const Measurement& m : contender->result.measurements) {
      const auto count = static_cast<int64_t>(m.samples_ns.size());
      const bool is_first = state.most_samples == 0;
      state.fewest_samples = is_first ? count : std::min(state.fewest_samples, count);
      const double time_s = sampled_s(m);
      state.least_sampled_s = is_first ? time_s : std::min(state.least_sampled_s, time_s);
      state.most_samples = std::max(state.most_samples, count);
    }
  }
  state.is_interrupted = is_interrupted();
  return state;
}

/// Whether every measurement's samples have a property.
template <class F>
bool all_samples(const std::vector<Contender*>& contenders, const F& holds) {
  for (const Contender* contender : contenders) {
    if (contender->result.status != Status::ok) continue;
    for (const Measurement& m : contender->result.measurements) {
      if (!holds(m.samples_ns)) return false;
    }
  }
  return true;
}

bool is_known(const std::vector<Contender*>& contenders, const RunConfig& config) {
  std::vector<RunnerResult> strategies, baselines;
  for (const Contender* contender : contenders) {
    if (contender->result.status == Status::ok)
      (contender->is_baseline() ? baselines : strategies).push_back(contender->result);
  }
  return are_known(strategies, baselines, config.seed, config.target_ci_pct / 100);
}

bool is_settled(const std::vector<Contender*>& contenders, const RunConfig& config) {
  if (config.stop == "count") return true;
  if (config.stop == "entropy") return all_samples(contenders, is_entropy_settled);
  if (config.stop == "stdrel") {
    return all_samples(contenders, [&](std::span<const double> samples) {
      return relative_noise_pct(samples) <= config.max_noise_pct;
    });
  }
  return is_known(contenders, config);
}

/// Sets the order of the next round: reversed, random, or the same.
void reorder(std::vector<Contender*>& contenders, const std::string& interleave,
             std::mt19937_64& random) {
  if (interleave == "abba") std::reverse(contenders.begin(), contenders.end());
  if (interleave == "random") std::shuffle(contenders.begin(), contenders.end(), random);
}

}  // namespace

void time_in_rounds(std::vector<Contender*> contenders, const Timing& timing, const Guard& guard) {
  const RunConfig& config = timing.config;
  if (contenders.empty() || is_interrupted()) return;
  // Waits only for energy, which alone is compared with it.
  const std::optional<double> idle_w =
      timing.monitor != nullptr && config.energy ? idle_power_w(*timing.monitor) : std::nullopt;
  const auto start = Clock::now();
  // Before clocks are warm: they would drop again while capturing and copying.
  int64_t measurements = 0;
  for (Contender* contender : contenders) {
    guard(*contender, [&] {
      contender->run_once();
      contender->make_samplers(timing.sampling);
    });
    measurements += contender->num_measurements();
  }
  const WarmUp warm = warm_up(contenders, timing, guard);
  for (Contender* contender : contenders) contender->watch(timing.monitor, warm.throttle);
  std::mt19937_64 random(config.order_seed);
  std::shuffle(contenders.begin(), contenders.end(), random);
  const StopRule rule{config.rounds,
                      config.min_samples,
                      config.max_samples,
                      std::max(0.0, timing.limit_s - seconds_since(start)),
                      config.stop,
                      config.min_time_s,
                      config.interleave == "abba"};
  SampleSequence sequence;
  const auto first_round = sequence.start;
  std::string reason;
  // Rounds are not warmed up again: they follow one another without a pause, each block begins with
  // an uncounted sample where caches matter, and a clock that drops is seen in every sample's.
  for (int64_t round = 0; reason.empty(); ++round) {
    for (Contender* contender : contenders) {
      if (is_interrupted()) break;
      guard(*contender, [&] { contender->sample_block(round, rule, measurements, sequence); });
    }
    reorder(contenders, config.interleave, random);
    StopState state = state_of(contenders);
    if (state.most_samples == 0 && !state.is_interrupted) break;  // nothing can be timed
    state.rounds = round + 1;
    state.elapsed_s = seconds_since(first_round);
    reason = stop_reason(rule, state, [&] { return is_settled(contenders, config); });
  }
  const double walltime_s = seconds_since(first_round);
  for (Contender* contender : contenders) {
    contender->finish_clocks();
    for (Measurement& m : contender->result.measurements) {
      m.stop_reason = reason;
      m.walltime_s = walltime_s;
      m.warmup_s = warm.seconds;
    }
    guard(*contender, [&] { contender->measure_enqueueing(); });
    if (config.energy) guard(*contender, [&] { contender->measure_energy(idle_w); });
  }
}

}  // namespace wide::bench
