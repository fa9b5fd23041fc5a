// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a device says of itself while it is measured. An interface, so that everything that is
// decided by clocks is tested with clocks made by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wide::bench {

/// Why clocks are not what they could be, as bits; the names are those of results.
enum ThrottleReason : uint32_t {
  kSwPowerCap = 1u << 0,
  kHwSlowdown = 1u << 1,
  kSwThermal = 1u << 2,
  kHwThermal = 1u << 3,
  kHwPowerBrake = 1u << 4,
};
/// "sw_power_cap", ..
std::vector<std::string> names_of_reasons(uint32_t reasons);

/// What is not known is none.
struct Reading {
  std::optional<double> sm_mhz, power_w, temp_c;
  uint32_t reasons = 0;        ///< of ThrottleReason
  bool is_power_mean = false;  ///< it may be that of the last second, whatever ran in it
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  /// The clock and what limits it, between samples: as cheap as can be.
  virtual Reading read_clock() = 0;
  /// All there is.
  virtual Reading read_all() = 0;
  /// Joules since some moment; none where the device does not count them.
  virtual std::optional<double> total_energy_j() = 0;
};

}  // namespace wide::bench
