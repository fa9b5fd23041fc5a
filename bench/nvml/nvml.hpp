// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A device's monitor by NVML, the driver's own library. It is loaded at run time: without a driver
// there is none, and clocks are unknown, which is reported but is no error.
#pragma once

#include <memory>
#include <string>

#include "bench/nvml/monitor.hpp"

namespace wide::bench {

struct NvmlMonitor {
  std::unique_ptr<Monitor> monitor;  ///< null if not available
  std::string reason;                ///< why it is not available
};

/// For the device at this address on the bus.
NvmlMonitor open_nvml(const std::string& pci_bus_id);

}  // namespace wide::bench
