// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>

#include "wide/device.hpp"

namespace wide {

/// Threads this process may run on: as many processors as its main thread's affinity mask has,
/// whichever thread asks, but no more than its control group's quota of processor time.
int usable_cpu_threads();

/// A control group's quota in processors, rounded up, as its cpu.max says: 2 for "150000
/// 100000". INT_MAX where there is no limit ("max 100000"), or none that can be read.
int cpu_quota(const std::string& cpu_max);

/// Bytes of memory that may still be taken: what the system reports as available, but no more than
/// the control group, of version 2 or 1, has left; file caches in memory do not count as taken.
/// INT64_MAX where neither is known. `root` has proc and sys.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

/// Throws out_of_memory where fewer bytes are available. Checked before large allocations: the
/// system grants gigabytes that it does not have, and then kills the process. `what`: "operands
/// take".
void require_available_memory(double bytes, const std::string& what);

/// The name in Linux' cpuinfo; on ARM the numbers that it has instead: "CPU implementer 0x41 part
/// 0xd4f". "CPU" where it has neither.
std::string cpu_model_name(std::istream& cpuinfo);

/// Best effort: what the system does not say stays 0, and the name "CPU".
DeviceInfo cpu_device_info(int num_threads);

}  // namespace wide
