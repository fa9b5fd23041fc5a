// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a device reports while it is measured. An interface, so that everything that is
// decided by clocks is tested with hand-made clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wide::bench {

/// Reasons for lowered clocks, as bits; the names are those in results.
enum ThrottleReason : uint32_t {
  kSwPowerCap = 1u << 0,
  kHwSlowdown = 1u << 1,
  kSwThermal = 1u << 2,
  kHwThermal = 1u << 3,
  kHwPowerBrake = 1u << 4,
};
/// "sw_power_cap", ..
std::vector<std::string> names_of_reasons(uint32_t reasons);

/// Unknown values are none.
struct Reading {
  std::optional<double> sm_mhz, power_w, temp_c;
  uint32_t reasons = 0;        ///< of ThrottleReason
  bool is_power_mean = false;  ///< it may be the mean of the last second, whatever ran in it
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  /// The clock and what limits it, between samples: as cheap as possible.
  virtual Reading read_clock() = 0;
  /// All values.
  virtual Reading read_all() = 0;
  /// Joules since some fixed moment; none if the device does not count them.
  virtual std::optional<double> total_energy_j() = 0;
};

}  // namespace wide::bench
