// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What calls cost in joules. Sensors of power see a quarter of the time and counters of energy tick
// every 10 ms or slower (arXiv 2312.02741), so a window below a second is refused, not rounded.
#pragma once

#include <functional>
#include <optional>

#include "bench/nvml/monitor.hpp"
#include "bench/result.hpp"

namespace wide::bench {

inline constexpr double kEnergyWindow_s = 1;

/// Power of a device that has rested so long: what ran before is still in it, and in the mean of a
/// second that a driver may say.
inline constexpr double kIdleRest_s = 1;
std::optional<double> idle_power_w(Monitor& monitor, double rest_s = kIdleRest_s);

/// Repeats `calls`, which makes some calls and says how many, for at least `window_s`. By the
/// device's counter where it has one, else by its power over time. `idle_w` is stated beside it and
/// not subtracted. `monitor` may be null: not valid then.
Energy measure_energy(Monitor* monitor, std::optional<double> idle_w,
                      const std::function<int64_t()>& calls, double window_s = kEnergyWindow_s);

}  // namespace wide::bench
