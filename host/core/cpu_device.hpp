// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wide/device.hpp"

namespace wide {

/// Threads this process may run on: its affinity mask, not the machine's core count.
int usable_cpu_threads();

/// Best effort: what the system does not say stays 0, and the name "CPU".
DeviceInfo cpu_device_info(int num_threads);

}  // namespace wide
