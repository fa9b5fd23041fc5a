// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/stop_rule.hpp"

#include <algorithm>
#include <cmath>

namespace wide::bench {

namespace {

constexpr double kBlock_s = 0.02;
constexpr double kBlockSamples = 10;

/// rule.rounds, then about a quarter more each time.
bool is_checkpoint(const StopRule& rule, int64_t rounds) {
  const int64_t step = rule.in_pairs ? 2 : 1;
  const auto whole = [&](int64_t count) { return (count + step - 1) / step * step; };
  int64_t next = whole(std::max<int64_t>(rule.rounds, 1));
  while (next < rounds) next = whole(next + std::max<int64_t>(1, next / 4));
  return next == rounds;
}

}  // namespace

std::string stop_reason(const StopRule& rule, const StopState& state,
                        const std::function<bool()>& is_settled) {
  if (state.is_interrupted) return "interrupted";
  if (state.rounds < kMinRounds) return "";
  if (state.most_samples >= rule.max_samples) return "max_samples";
  if (rule.in_pairs && state.rounds % 2 != 0) return "";
  const bool has_timed_out = state.elapsed_s >= rule.limit_s;
  const bool has_enough = state.rounds >= rule.rounds && state.fewest_samples >= rule.min_samples &&
                          state.least_sampled_s >= rule.min_time_s;
  const bool asks = has_timed_out || is_checkpoint(rule, state.rounds);
  if (has_enough && asks && is_settled()) return rule.criterion;
  return has_timed_out ? "timeout" : "";
}

int64_t samples_per_block(const StopRule& rule, double sample_s, int64_t measurements) {
  const auto rounds = static_cast<double>(std::max<int64_t>(rule.rounds, 1));
  const double least = std::ceil(static_cast<double>(rule.min_samples) / rounds);
  const double wanted =
      std::max(least, std::min(kBlockSamples, std::ceil(kBlock_s / std::max(sample_s, 1e-9))));
  const double share_s = rule.limit_s / (rounds * static_cast<double>(measurements));
  const double affordable = std::floor(share_s / std::max(sample_s, 1e-9));
  const double at_most = std::floor(static_cast<double>(rule.max_samples) / rounds);
  return static_cast<int64_t>(std::max(1.0, std::min({wanted, affordable, at_most})));
}

}  // namespace wide::bench
