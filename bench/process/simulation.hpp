// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU, from wbench's side: a CUDA runtime preloaded in place of the real one. It is
// found at run time by its C symbols, so that wbench is the same program with and without it.
#pragma once

#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Whether this build has kernels that could run on it.
constexpr bool has_simulation() {
  return WIDE_HAS_CUDA;
}
/// Whether this process runs on the simulated GPU.
bool is_simulated();

/// Whether cuBLAS and cuDNN run there, too: their results can be checked, but nothing is counted.
enum class SimulatedVendors : bool { no, yes };

/// A reason why a call cannot run here; where it is that a vendor's library does not start, which
/// is so of all that are not simulated, the reason for that.
std::string simulated_reason(std::string reason);

/// Restarts this program with the simulated runtime preloaded. Does not return; throws
/// Error{unsupported} if it, or the requested vendors' libraries, are not built.
[[noreturn]] void restart_simulated(const std::vector<std::string>& argv, SimulatedVendors vendors);

/// Forgets the launches so far; no effect on a real device.
void forget_launches();
/// Finished launches since then, with their counters; none on a real device. Throws Error
/// if the runtime's answer cannot be read.
std::vector<LaunchCounters> counted_launches();

}  // namespace wide::bench
