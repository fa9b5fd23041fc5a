// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A device's monitor by NVML, the driver's own library. It is opened at run time: a machine without
// a driver has none, and then clocks are unknown, which is said and no error.
#pragma once

#include <memory>
#include <string>

#include "bench/nvml/monitor.hpp"

namespace wide::bench {

struct NvmlMonitor {
  std::unique_ptr<Monitor> monitor;  ///< null where there is none
  std::string reason;                ///< why not
};

/// Of the device at this address on the bus.
NvmlMonitor open_nvml(const std::string& pci_bus_id);

}  // namespace wide::bench
