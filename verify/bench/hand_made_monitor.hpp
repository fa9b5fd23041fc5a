// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A device's clocks, power and energy as a test wants them.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "bench/nvml/monitor.hpp"

namespace wide::bench {

/// Says what a test wants; the last entry for ever.
struct HandMadeMonitor : Monitor {
  Reading read_clock() override {
    const Reading reading = readings[std::min(next, readings.size() - 1)];
    ++next;
    return reading;
  }
  Reading read_all() override { return readings[std::min(next, readings.size() - 1)]; }
  std::optional<double> total_energy_j() override {
    return counts ? std::optional(joules += 5) : std::nullopt;
  }
  std::vector<Reading> readings{{}};
  size_t next = 0;
  bool counts = true;
  double joules = 0;
};

inline Reading clock_of(double mhz, uint32_t reasons = 0) {
  Reading reading{mhz, 300.0, 60.0, reasons, false};
  return reading;
}

}  // namespace wide::bench
