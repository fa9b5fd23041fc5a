// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a test may ask of the simulated CUDA runtime. The same is in the environment, for programs
// that do not know that they are simulated, and behind C symbols, for those that find out at run
// time (wbench --sim looks them up with dlsym).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "verify/simt/machine.hpp"

namespace wide::simcuda {

/// When an operation put on a stream is carried out.
enum class Order {
  eager,   ///< at once
  lazy,    ///< only when something waits for it, and only what that wait needs
  random,  ///< any time before something waits for it that its dependencies allow; seeded
};
void set_order(Order order, uint32_t seed);

/// The k-th counted call from now on returns `error` (k = 1: the next one; 0: off). Sticky: so does
/// every call after it. Calls that release, or only ask for the last error, are not counted.
void fail_at(int64_t k, cudaError_t error = cudaErrorMemoryAllocation, bool is_sticky = false);
int64_t num_calls();
const std::string& failed_call();  ///< name of the call that was made to fail
/// Forgets sticky errors, pending work, streams, events, graphs and memory.
void reset_device();

struct LaunchRecord {
  std::string kernel;
  simt::Dim3 grid, block;
  simt::Counters counters;
};
const std::vector<LaunchRecord>& launches();
void clear_launches();

/// Waits for all work. What a test leaves here makes the process exit with 86.
const std::vector<simt::Finding>& findings();
void clear_findings();
std::vector<std::string> leaks();  ///< live allocations, streams, events, graphs

}  // namespace wide::simcuda
