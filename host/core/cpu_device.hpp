// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "wide/device.hpp"

namespace wide {

/// Threads this process may run on: as many processors as its main thread's affinity mask has,
/// whichever thread asks, but no more than its control group has the time of.
int usable_cpu_threads();

/// Processors that a control group has the time of, rounded up, as its cpu.max says: 2 of "150000
/// 100000". INT_MAX where there is no limit ("max 100000"), or none that can be read.
int cpu_quota(const std::string& cpu_max);

/// Bytes of memory that may still be taken: of the machine's as many as the system calls available,
/// and no more than the control group, of version 2 or 1, has left; files that the system keeps in
/// memory are none that are taken. INT64_MAX where neither is known. `root` has proc and sys.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

/// Best effort: what the system does not say stays 0, and the name "CPU".
DeviceInfo cpu_device_info(int num_threads);

}  // namespace wide
