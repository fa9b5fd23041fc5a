// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// When a case has been measured enough. All contenders of a case stop together, since ratios pair
// the rounds that both sides took part in. Pure, so that it is tested without a clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace wide::bench {

struct StopRule {
  int64_t rounds = 12;  ///< at least, unless time runs out
  int64_t min_samples = 30, max_samples = 5000;
  double limit_s = 15;
  std::string criterion = "ci";  ///< what `is_settled` tests, and the reported stop reason
  double min_time_s = 0;         ///< of samples, in every measurement, before that is tested
  /// Every second round runs in the opposite order, so that drift cancels: an odd number would
  /// leave one over, and the median of ratios would be biased to those of its order.
  bool in_pairs = false;
};

struct StopState {
  int64_t rounds = 0;                            ///< finished
  int64_t fewest_samples = 0, most_samples = 0;  ///< over all measurements
  double elapsed_s = 0;
  bool is_interrupted = false;
  double least_sampled_s = 0;  ///< over all measurements: the sum of their samples
};

/// Even if time has run out, this many rounds are taken: fewer have no meaningful spread.
inline constexpr int64_t kMinRounds = 4;

/// Why to stop ("interrupted", "timeout", "max_samples" or the rule's criterion); empty if the
/// measurement goes on, as it does after the first round of a pair, whatever the time. `is_settled`
/// returns whether all intervals are narrow enough; because it takes time it is called last, and
/// only if rounds have grown by a quarter since the previous call, or if time has run out:
/// "timeout" means that the criterion was not met.
std::string stop_reason(const StopRule& rule, const StopState& state,
                        const std::function<bool()>& is_settled);

/// Samples of one block, at `sample_s` each: ten or 20 ms' worth, but enough for min_samples within
/// the rounds, not more than leaves max_samples for all of them, and as few as one if the time
/// limit, shared by all `measurements`, requires it.
int64_t samples_per_block(const StopRule& rule, double sample_s, int64_t measurements);

}  // namespace wide::bench
