// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The energy of calls in joules. Power sensors cover a quarter of the time and energy counters tick
// every 10 ms or slower (arXiv 2312.02741), so a window below a second is refused, not rounded.
#pragma once

#include <functional>
#include <optional>

#include "bench/document/result.hpp"
#include "bench/nvml/monitor.hpp"

namespace wide::bench {

inline constexpr double kEnergyWindow_s = 1;

/// Idle power is read after a rest this long: before, it still reflects earlier work, and so does
/// the mean over a second that a driver may report.
inline constexpr double kIdleRest_s = 1;
std::optional<double> idle_power_w(Monitor& monitor, double rest_s = kIdleRest_s);

/// Repeats `calls`, which makes some calls and returns how many, for at least `window_s`. Uses the
/// device's counter if it has one, from one of its steps to another, else its power over time.
/// `idle_w` is reported beside it and not subtracted. Without a `monitor` (null) the result is not
/// valid.
Energy measure_energy(Monitor* monitor, std::optional<double> idle_w,
                      const std::function<int64_t()>& calls, double window_s = kEnergyWindow_s);

}  // namespace wide::bench
