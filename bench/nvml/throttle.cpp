// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/throttle.hpp"
#include "bench/document/doubts.hpp"

#include <algorithm>

#include "bench/statistics/order.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr size_t kStableWindows = 3;
/// A window of one or two readings is only their noise.
constexpr int64_t kMinReadings = 3;
constexpr uint32_t kAlwaysThrottled = kHwSlowdown | kSwThermal | kHwThermal | kHwPowerBrake;

void keep_larger(std::optional<double>& largest, const std::optional<double>& value) {
  if (value && !(largest && *largest >= *value)) largest = value;
}

std::string discarded_text(int64_t discarded, int64_t total) {
  return "throttled: " + text(discarded) + " of " + counted(total, "sample") + " discarded";
}

}  // namespace

void ClockStability::add(double seconds, double sm_mhz) {
  if (count_ >= kMinReadings && seconds - window_start_ >= kClockWindow_s) close_window();
  if (count_ == 0) window_start_ = seconds;
  sum_ += sm_mhz;
  ++count_;
}

void ClockStability::close_window() {
  means_.push_back(sum_ / static_cast<double>(count_));
  if (means_.size() > kStableWindows) means_.erase(means_.begin());
  sum_ = 0;
  count_ = 0;
  if (means_.size() < kStableWindows) return;
  const auto [least, most] = std::minmax_element(means_.begin(), means_.end());
  if (*most - *least > tolerance_ * *most) return;
  double sum = 0;
  for (const double mean : means_) sum += mean;
  stable_mhz_ = sum / static_cast<double>(means_.size());
}

ThrottleRule::Policy throttle_policy(const std::string& name) {
  using Policy = ThrottleRule::Policy;
  if (name == "discard") return Policy::discard;
  if (name == "warn") return Policy::warn;
  if (name == "fail") return Policy::fail;
  if (name == "off") return Policy::off;
  throw Error(ErrorCode::invalid_argument,
              "--throttle: \"" + name + "\", expected discard, warn, fail or off");
}

bool is_throttled(const ThrottleRule& rule, const Reading& reading) {
  if ((reading.reasons & kAlwaysThrottled) != 0) return true;
  return rule.stable_mhz && reading.sm_mhz &&
         *reading.sm_mhz < rule.threshold_pct / 100 * *rule.stable_mhz;
}

ClockRecord::Sample ClockRecord::judge(const ThrottleRule& rule, const Reading& reading) {
  ++total_;
  reasons_ |= reading.reasons;
  if (rule.policy == ThrottleRule::Policy::off || !is_throttled(rule, reading))
    return Sample::steady;
  ++throttled_;
  if (rule.policy != ThrottleRule::Policy::discard) return Sample::throttled;
  ++discarded_;
  return Sample::discarded;
}

void ClockRecord::add_block(const Reading& reading) {
  reasons_ |= reading.reasons;
  keep_larger(power_w_, reading.power_w);
  is_power_mean_ = is_power_mean_ || (reading.power_w && reading.is_power_mean);
  keep_larger(temp_c_, reading.temp_c);
}

std::string ClockRecord::finish(const ThrottleRule& rule, Measurement& m) const {
  m.discarded_throttle = discarded_;
  m.kept_throttle = throttled_ - discarded_;
  if (!m.samples_sm_mhz.empty()) {
    m.clocks = Clocks{median(m.samples_sm_mhz),
                      *std::min_element(m.samples_sm_mhz.begin(), m.samples_sm_mhz.end()),
                      names_of_reasons(reasons_),
                      temp_c_,
                      power_w_,
                      rule.stable_mhz};
    if (is_power_mean_)
      m.warnings.emplace_back("power: the driver's mean of a second, in which others ran, too");
  }
  if (throttled_ == 0) return "";
  const std::string text = discarded_ > 0 ? discarded_text(discarded_, total_)
                                          : "throttled: " + std::to_string(throttled_) + " of " +
                                                counted(total_, "sample");
  m.warnings.push_back(text);
  const bool is_too_much =
      static_cast<double>(discarded_) > kMaxDiscarded * static_cast<double>(total_);
  return rule.policy == ThrottleRule::Policy::fail || is_too_much ? text : "";
}

}  // namespace wide::bench
