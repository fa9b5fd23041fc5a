// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks of a kernel fit on a multiprocessor at once, and what limits them. Pure:
// computed from the needs of the kernel and the limits of the architecture, as NVIDIA's calculator
// does (cuda_occupancy.h, which the tests compare with).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// The resources of a multiprocessor, and their allocation granularity.
struct SmLimits {
  int64_t threads = 2048, blocks = 32;
  int64_t registers = 65536, registers_of_block = 65536;
  int64_t register_portion = 256;  ///< per warp
  int64_t schedulers = 4;          ///< each with its share of the registers; warps do not migrate
  int64_t shared_bytes = 0, shared_bytes_of_block = 0;
  int64_t shared_reserved = 1024, shared_portion = 128;  ///< per block
};

/// For compute capability 8.0 and 9.0, whose kernels are built here; none for others.
std::optional<SmLimits> sm_limits(int compute_capability);

struct Occupancy {
  int64_t by_threads = 0, by_blocks = 0, by_shared = 0;  ///< blocks that each alone would allow
  std::optional<int64_t> by_registers;                   ///< none if unknown
  int64_t blocks = 0;                                    ///< the smallest of them
  double pct = 0;                                        ///< of the threads
  std::vector<std::string> limited_by;                   ///< the limits that equal `blocks`
};

/// Throws invalid_argument for a block without threads.
Occupancy occupancy_of(const KernelUse& kernel, const SmLimits& limits);

}  // namespace wide::bench
