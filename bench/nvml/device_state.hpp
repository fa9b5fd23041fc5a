// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU's driver reports about its configuration, and about its other users.
#pragma once

#include <span>
#include <string>

#include "bench/document/result.hpp"

namespace wide::bench {

/// From NVML, for the device at this address on the bus; all unknown without NVML.
DeviceState device_state(const std::string& pci_bus_id);

/// The number of processes that a driver lists, other than ours. If our own id is not among
/// them we are in another PID namespace than the driver, and one of them is ours all the
/// same.
int64_t count_others(std::span<const unsigned> processes, unsigned own);

}  // namespace wide::bench
