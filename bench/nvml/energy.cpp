// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml/energy.hpp"

#include <chrono>
#include <thread>

#include "bench/process/interrupt.hpp"
#include "bench/timer/seconds.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct Drawn {
  std::optional<double> joules;  ///< none: the device stopped saying
  double seconds = 0;
  int64_t calls = 0;
};

/// From a step of the counter to another, as it moves a few times a second: from a moment between
/// steps to another, it may lack what was drawn in a whole one, or have as much too much. A counter
/// that does not move for so long is not waited for.
Drawn by_counter(Monitor& monitor, const std::function<int64_t()>& calls, double window_s) {
  constexpr double kLongestStep_s = 0.5;
  Drawn drawn;
  const auto run_to_step = [&] {
    const std::optional<double> before = monitor.total_energy_j();
    std::optional<double> now = before;
    for (const auto since = Clock::now();
         now && now == before && seconds_since(since) < kLongestStep_s && !is_interrupted();
         now = monitor.total_energy_j())
      drawn.calls += calls();
    return now;
  };
  const std::optional<double> before = run_to_step();
  drawn.calls = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < window_s && !is_interrupted()) drawn.calls += calls();
  const std::optional<double> after = run_to_step();
  drawn.seconds = seconds_since(start);
  if (before && after) drawn.joules = *after - *before;
  return drawn;
}

/// The current power, summed up over the calls.
Drawn by_power(Monitor& monitor, const std::function<int64_t()>& calls, double window_s) {
  Drawn drawn;
  drawn.joules = 0;
  const auto start = Clock::now();
  while (drawn.seconds < window_s && !is_interrupted()) {
    const double since = drawn.seconds;
    drawn.calls += calls();
    drawn.seconds = seconds_since(start);
    const std::optional<double> power_w = monitor.read_all().power_w;
    if (!power_w) drawn.joules.reset();
    if (drawn.joules) *drawn.joules += *power_w * (drawn.seconds - since);
  }
  return drawn;
}

Energy invalid(Energy energy, const char* reason) {
  energy.invalid_reason = reason;
  energy.joules.reset();
  return energy;
}

}  // namespace

std::optional<double> idle_power_w(Monitor& monitor, double rest_s) {
  const auto start = Clock::now();
  while (seconds_since(start) < rest_s && !is_interrupted())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return monitor.read_all().power_w;
}

Energy measure_energy(Monitor* monitor, std::optional<double> idle_w,
                      const std::function<int64_t()>& calls, double window_s) {
  Energy energy;
  energy.idle_w = idle_w;
  if (monitor == nullptr) return invalid(energy, "the device does not say what it draws");
  const bool counts = monitor->total_energy_j().has_value();
  energy.method = counts ? "nvml_total_energy" : "nvml_power_integral";
  const Drawn drawn =
      counts ? by_counter(*monitor, calls, window_s) : by_power(*monitor, calls, window_s);
  energy.window_s = drawn.seconds;
  if (is_interrupted()) return invalid(energy, "interrupted");
  if (!drawn.joules) return invalid(energy, "the device stopped saying");
  energy.joules = drawn.joules;
  if (!(*energy.joules > 0)) return invalid(energy, "the counter of energy did not move");
  energy.avg_w = *energy.joules / energy.window_s;
  energy.joules_per_call = *energy.joules / static_cast<double>(drawn.calls);
  return energy;
}

}  // namespace wide::bench
