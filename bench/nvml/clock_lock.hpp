// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Clocks that stay where they are while they are measured. What is locked outlives the process, so
// the lock is given back by whatever way a run ends, but for one: a process that is killed. Where
// the driver does not let us, that is said; nobody's clocks are changed by default.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/nvml/session.hpp"
#include "bench/result.hpp"

namespace wide::bench {

/// "base" (what the device keeps within its power), "max" or a number of MHz; throws
/// invalid_argument for other words. 0 stands for the first two.
int64_t parse_lock_clocks(const std::string& asked);

class ClockLock {
 public:
  /// Locks the device at this address on the bus. Throws Error{unsupported} where the driver
  /// refuses, with its reason and the way around, invalid_argument for more MHz than it has.
  ClockLock(const std::string& pci_bus_id, const std::string& asked);
  ~ClockLock();
  ClockLock(const ClockLock&) = delete;
  const LockedClocks& locked() const { return locked_; }

 private:
  std::unique_ptr<nvml::Session> session_;
  LockedClocks locked_;
};

}  // namespace wide::bench
