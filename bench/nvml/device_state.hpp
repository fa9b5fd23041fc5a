// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU's driver says of how it is set up, and of who else is on it.
#pragma once

#include <span>
#include <string>

#include "bench/result.hpp"

namespace wide::bench {

/// By NVML, of the device at this address on the bus; nothing is known where there is none.
DeviceState device_state(const std::string& pci_bus_id);

/// Of the processes that a driver names, those that are not ours. Where our own number is not among
/// them we are in another namespace of numbers than the driver, and one of them is ours all the
/// same.
int64_t count_others(std::span<const unsigned> processes, unsigned own);

}  // namespace wide::bench
