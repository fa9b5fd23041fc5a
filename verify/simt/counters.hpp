// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a launch did, counted the way the hardware serves it: per request of a warp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wide::simt {

enum class InstructionClass {
  integer,
  fp32,
  fp64,
  half,
  special,
  convert,
  move,
  memory,
  control,
  synchronise,
  tensor
};
constexpr int kInstructionClasses = 11;
const char* name(InstructionClass c);

/// Traffic of one buffer, in 32-byte sectors. What several blocks read is served by a cache after
/// the first: re-reads of another block's bytes are broadcast, the rest is streamed.
struct BufferTraffic {
  std::string name;
  int64_t unique_read_bytes = 0, unique_write_bytes = 0;
  int64_t read_sectors = 0, write_sectors = 0;  ///< requested
  int64_t reread_bytes = 0;  ///< requested again by a block that was not the first to read them
};

struct Counters {
  std::array<int64_t, kInstructionClasses> instructions{};                 ///< of threads
  int64_t load_requests = 0, load_sectors = 0, load_ideal_sectors = 0;     ///< global loads
  int64_t store_requests = 0, store_sectors = 0, store_ideal_sectors = 0;  ///< global stores
  int64_t atomic_requests = 0, atomic_sectors = 0;
  int64_t async_copy_sectors = 0, async_copy_ideal_sectors = 0, async_copy_bytes = 0;  ///< cp.async
  int64_t bulk_load_bytes = 0, bulk_store_bytes = 0;  ///< TMA and bulk copies, inside the tensor
  int64_t bulk_prefetch_bytes = 0;                    ///< likewise, into L2
  int64_t unique_read_bytes = 0, unique_write_bytes = 0;
  int64_t shared_load_passes = 0, shared_load_extra = 0;  ///< extra: lost to bank conflicts
  int64_t shared_store_passes = 0, shared_store_extra = 0;
  int64_t matrix_passes = 0, matrix_extra = 0;  ///< ldmatrix, stmatrix
  int64_t mma_flops = 0, wgmma_flops = 0;
  int64_t block_barriers = 0;          ///< arrivals of warps
  int64_t register_reallocations = 0;  ///< setmaxnreg
  std::vector<BufferTraffic> buffers;

  void add(const Counters& other);  ///< buffers by name
};

}  // namespace wide::simt
