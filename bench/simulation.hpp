// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU, seen from wbench: a CUDA runtime that stands in front of the real one. It is
// found at run time by its C symbols, so that wbench is the same program with and without it.
#pragma once

#include <string>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

/// Whether this build has kernels that could run there.
constexpr bool has_simulation() {
  return WIDE_HAS_CUDA;
}
/// Whether this process runs on the simulated GPU.
bool is_simulated();

/// Starts this program again, with the simulated runtime in front. Does not return; throws
/// Error{unsupported} where the runtime is not built.
[[noreturn]] void restart_simulated(const std::vector<std::string>& argv);

/// Forgets the launches so far; nothing on a real device.
void forget_launches();
/// Launches since then that have ended, with their counters; none on a real device. Throws Error
/// where the runtime's answer cannot be read.
std::vector<LaunchCounters> counted_launches();

}  // namespace wide::bench
