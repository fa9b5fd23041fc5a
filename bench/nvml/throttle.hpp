// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What clocks decide: when a device is warm, and which samples it was held back in. Pure, so that
// ramps, droops and lies of a device are tested without one.
//
// A device that was never seen stable is not throttled but still ramping: judged against its
// data sheet, every sample of the first case would be discarded (nvbench #231).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/nvml/monitor.hpp"
#include "bench/result.hpp"

namespace wide::bench {

/// Whether the clock has settled: the means of three windows of 50 ms, or of three readings where
/// those take longer, one after another, differ by no more than a tolerance.
class ClockStability {
 public:
  explicit ClockStability(double tolerance_pct) : tolerance_(tolerance_pct / 100) {}
  /// A reading, in order of time.
  void add(double seconds, double sm_mhz);
  bool is_stable() const { return stable_mhz_.has_value(); }
  /// The mean of the windows that were seen stable last.
  std::optional<double> stable_mhz() const { return stable_mhz_; }

 private:
  void close_window();

  double tolerance_;
  double window_start_ = 0, sum_ = 0;
  int64_t count_ = 0;
  std::vector<double> means_;  ///< of the last windows
  std::optional<double> stable_mhz_;
};

inline constexpr double kClockWindow_s = 0.05;
/// What it takes to see that a clock has settled: three windows, the reading that ends the last,
/// and as much again for one in which it rises.
inline constexpr double kClocksSeen_s = 6 * kClockWindow_s;
/// Longer than clocks of any device known take to settle under load.
inline constexpr double kMaxClockWarmUp_s = 3;

struct ThrottleRule {
  enum class Policy : uint8_t { discard, warn, fail, off };
  Policy policy = Policy::off;
  double threshold_pct = 75;
  std::optional<double> stable_mhz;  ///< none: nothing is judged by its clock
};

/// "discard", "warn", "fail" or "off".
ThrottleRule::Policy throttle_policy(const std::string& name);

/// A clock below the threshold, or a reason that no steady state has. A power cap alone is how a
/// device runs under load; what it costs shows in the clock.
bool is_throttled(const ThrottleRule& rule, const Reading& reading);

/// A share of discarded samples above this is no measurement.
inline constexpr double kMaxDiscarded = 0.2;

/// Clocks of one measurement, sample by sample.
class ClockRecord {
 public:
  enum class Sample : uint8_t { steady, throttled, discarded };
  /// What the sample before this reading is; a throttled one is kept.
  Sample judge(const ThrottleRule& rule, const Reading& reading);
  void add_block(const Reading& reading);
  /// Into a measurement: clocks, discards, warnings. Why it is no measurement; empty where it is.
  std::string finish(const ThrottleRule& rule, Measurement& measurement) const;
  int64_t discarded() const { return discarded_; }

 private:
  int64_t throttled_ = 0, discarded_ = 0, total_ = 0;
  uint32_t reasons_ = 0;
  bool is_power_mean_ = false;
  std::optional<double> power_w_, temp_c_;
};

}  // namespace wide::bench
