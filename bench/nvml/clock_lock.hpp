// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Keeps clocks constant during a measurement. Locked clocks outlive the process, so every way in
// which a run ends releases the lock, except when the process is killed. If
// the driver refuses, that is reported; by default no clocks are changed.
#pragma once

#include <memory>
#include <string>

#include "bench/document/result.hpp"
#include "bench/nvml/session.hpp"

namespace wide::bench {

/// "base" (what the device sustains within its power limit), "max" or a number of MHz; throws
/// invalid_argument for other words. 0 stands for the first two.
int64_t parse_lock_clocks(const std::string& asked);

class ClockLock {
 public:
  /// Locks the device at this address on the bus. Throws Error{unsupported} if the driver
  /// refuses, with its reason and a workaround, invalid_argument for more MHz than the device has.
  ClockLock(const std::string& pci_bus_id, const std::string& asked);
  ~ClockLock();
  ClockLock(const ClockLock&) = delete;
  const LockedClocks& locked() const { return locked_; }

 private:
  std::unique_ptr<nvml::Session> session_;
  LockedClocks locked_;
};

}  // namespace wide::bench
