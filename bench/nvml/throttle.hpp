// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Decisions made from clocks: when a device is warm, and which samples it was throttled in. Pure,
// so that ramps, droops and wrong readings of a device are tested without one.
//
// A device that was never seen stable is not throttled but still ramping: judged by its
// data sheet, every sample of the first case would be discarded (nvbench #231).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/nvml/monitor.hpp"

namespace wide::bench {

/// Whether the clock has settled: the means of three consecutive windows of 50 ms, or of three
/// readings if those take longer, differ by no more than a tolerance.
class ClockStability {
 public:
  explicit ClockStability(double tolerance_pct) : tolerance_(tolerance_pct / 100) {}
  /// A reading, in order of time.
  void add(double seconds, double sm_mhz);
  bool is_stable() const { return stable_mhz_.has_value(); }
  /// The mean of the windows that were stable most recently.
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
/// The time needed to see that a clock has settled: three windows, the reading that ends the last,
/// and as much again in which it may rise.
inline constexpr double kClocksSeen_s = 6 * kClockWindow_s;
/// Longer than the clocks of any known device take to settle under load.
inline constexpr double kMaxClockWarmUp_s = 3;

struct ThrottleRule {
  enum class Policy : uint8_t { discard, warn, fail, off };
  Policy policy = Policy::off;
  double threshold_pct = 75;
  std::optional<double> stable_mhz;  ///< none: samples are not judged by their clock
};

/// "discard", "warn", "fail" or "off".
ThrottleRule::Policy throttle_policy(const std::string& name);

/// A clock below the threshold, or a reason that does not occur in a steady state. A power cap
/// alone is normal under load; its effect shows in the clock.
bool is_throttled(const ThrottleRule& rule, const Reading& reading);

/// Clocks of one measurement, sample by sample.
class ClockRecord {
 public:
  enum class Sample : uint8_t { steady, throttled, discarded };
  /// Judges the sample before this reading; a throttled one is kept.
  Sample judge(const ThrottleRule& rule, const Reading& reading);
  void add_block(const Reading& reading);
  /// Writes clocks, discards and warnings to a measurement. Returns why it is invalid, or "".
  std::string finish(const ThrottleRule& rule, Measurement& measurement) const;
  int64_t discarded() const { return discarded_; }

 private:
  int64_t throttled_ = 0, discarded_ = 0, total_ = 0;
  uint32_t reasons_ = 0;
  bool is_power_mean_ = false;
  std::optional<double> power_w_, temp_c_;
};

}  // namespace wide::bench
