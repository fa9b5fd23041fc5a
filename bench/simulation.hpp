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

/// Whether cuBLAS and cuDNN compute there, too: their results can be checked, and nothing counted.
enum class SimulatedVendors : bool { no, yes };

/// Starts this program again, with the simulated runtime in front. Does not return; throws
/// Error{unsupported} where it, or the vendors' libraries that are asked for, are not built.
[[noreturn]] void restart_simulated(const std::vector<std::string>& argv, SimulatedVendors vendors);

/// Forgets the launches so far; nothing on a real device.
void forget_launches();
/// Launches since then that have ended, with their counters; none on a real device. Throws Error
/// where the runtime's answer cannot be read.
std::vector<LaunchCounters> counted_launches();

}  // namespace wide::bench
