// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks of a kernel a multiprocessor holds at once, and what keeps it from more. Pure:
// reckoned from what the kernel asks for and what the architecture has, as NVIDIA's calculator
// does (cuda_occupancy.h, which the tests compare with).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

/// What a multiprocessor has to give, and in which portions.
struct SmLimits {
  int64_t threads = 2048, blocks = 32;
  int64_t registers = 65536, registers_of_block = 65536;
  int64_t register_portion = 256;  ///< of a warp
  int64_t schedulers = 4;          ///< each with its share of the registers; warps do not move
  int64_t shared_bytes = 0, shared_bytes_of_block = 0;
  int64_t shared_reserved = 1024, shared_portion = 128;  ///< of a block
};

/// Of compute capability 8.0 and 9.0, whose kernels are built here; none of others.
std::optional<SmLimits> sm_limits(int compute_capability);

struct Occupancy {
  int64_t by_threads = 0, by_blocks = 0, by_shared = 0;  ///< blocks that each alone would admit
  std::optional<int64_t> by_registers;                   ///< none where they are not known
  int64_t blocks = 0;                                    ///< the least of them
  double pct = 0;                                        ///< of the threads
  std::vector<std::string> limited_by;                   ///< those that are the least
};

/// Throws invalid_argument for a block without threads.
Occupancy occupancy_of(const KernelUse& kernel, const SmLimits& limits);

}  // namespace wide::bench
