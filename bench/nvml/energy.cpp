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

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
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
  energy.method = "nvml_total_energy";
  energy.idle_w = idle_w;
  if (monitor == nullptr) return invalid(energy, "the device does not say what it draws");
  const std::optional<double> before = monitor->total_energy_j();
  if (!before) energy.method = "nvml_power_integral";
  int64_t count = 0;
  double integral = 0;
  bool has_power = true;
  const auto start = Clock::now();
  auto last = start;
  do {
    count += calls();
    const auto now = Clock::now();
    if (!before) {
      const std::optional<double> power_w = monitor->read_all().power_w;
      has_power = has_power && power_w;
      integral += power_w.value_or(0) * seconds_between(last, now);
    }
    last = now;
  } while (seconds_between(start, last) < window_s && !is_interrupted());
  energy.window_s = seconds_between(start, last);
  if (energy.window_s < window_s) return invalid(energy, "interrupted");
  const std::optional<double> after = before ? monitor->total_energy_j() : std::nullopt;
  if (before ? !after : !has_power) return invalid(energy, "the device stopped saying");
  energy.joules = before ? *after - *before : integral;
  if (!(*energy.joules > 0)) return invalid(energy, "the counter of energy did not move");
  energy.avg_w = *energy.joules / energy.window_s;
  energy.joules_per_call = *energy.joules / static_cast<double>(count);
  return energy;
}

}  // namespace wide::bench
