// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The shadow cells of a block's shared memory. A cell stands for 1 to 16 bytes: each 64 bytes begin
// with 16-byte cells and are split as far as the finest access to them needs, so that every byte is
// exact while tiles that move in 16-byte pieces cost a cell each. Cells of earlier blocks are told
// from this block's by a generation, and the storage goes from block to block: beginning a block
// clears nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "verify/simt/types.hpp"

namespace wide::simt {

struct SharedCell {
  static constexpr uint8_t kInitialised = 1;
  static constexpr uint8_t kInFlight = 2;   ///< a cp.async that its thread has not waited for
  static constexpr uint8_t kAtomic = 4;     ///< the last write
  static constexpr uint8_t kGeneric = 8;    ///< the last write went through the generic proxy
  static constexpr uint8_t kMbarrier = 16;  ///< of a live mbarrier
  static constexpr uint16_t kNobody = 0xffff;

  uint32_t generation = 0;
  uint16_t writer = kNobody;  ///< slot
  uint8_t flags = 0;
  uint32_t time = 0, location = 0;  ///< of the write
  LaneMask readers = 0;             ///< warps that have read since
};

/// Who read a cell last in one warp. Time 0: nobody.
struct SharedReader {
  uint32_t time;
  uint32_t lane : 5;
  uint32_t is_atomic : 1;
  uint32_t location : 26;
};
struct WarpReaders {
  SharedReader last, other;  ///< other: the last one of another lane
};

/// Asynchronous reads of 16 bytes by one warp.
struct AsyncReads {
  int32_t under_way = 0;
  int32_t issuer = -1;  ///< thread
  int32_t slot = -1;    ///< when the last one ended
  uint32_t time = 0, location = 0;
};

class SharedShadow {
 public:
  static constexpr int kCoarsest = 4;  ///< levels are powers of two in bytes
  static constexpr int kChunk = 6;     ///< split together

  SharedShadow(int64_t bytes, int num_warps);
  ~SharedShadow();
  SharedShadow(const SharedShadow&) = delete;
  SharedShadow& operator=(const SharedShadow&) = delete;

  /// The level of the cells at an access that lies within one chunk, after splitting for it.
  int level_for(uint32_t offset, int64_t bytes) {
    const size_t chunk = offset >> kChunk;
    const int level = levels_[chunk];
    const uint32_t below = (uint32_t{1} << level) - 1;
    if (((offset | static_cast<uint32_t>(bytes)) & below) == 0) return level;
    return split(chunk, offset | static_cast<uint32_t>(bytes));
  }
  /// A cell of this block; one that nothing has touched yet is made so.
  SharedCell& cell(int level, size_t index) {
    SharedCell& found = storage_->cells[static_cast<size_t>(level)][index];
    if (found.generation != generation_) {
      found = {};
      found.generation = generation_;
    }
    return found;
  }
  /// Valid where the cell's mask of readers has the warp.
  WarpReaders& readers(int level, size_t index, int warp) {
    return storage_->readers[static_cast<size_t>(level)]
                            [index * static_cast<size_t>(num_warps_) + static_cast<size_t>(warp)];
  }

  /// Of 16-byte unit `unit`; made when first asked for.
  AsyncReads& async_reads(size_t unit, int warp) {
    if (async_.empty()) make_async();
    async_warps_[unit] |= LaneMask{1} << warp;
    return async_[unit * static_cast<size_t>(num_warps_) + static_cast<size_t>(warp)];
  }
  bool has_async_reads() const { return !async_.empty(); }
  /// Warps that have an entry.
  LaneMask async_warps(size_t unit) const { return async_warps_[unit]; }

 private:
  struct Storage {
    int64_t bytes = 0;
    int num_warps = 0;
    std::array<std::unique_ptr<SharedCell[]>, kCoarsest + 1> cells;
    std::array<std::unique_ptr<WarpReaders[]>, kCoarsest + 1> readers;
    void need(int level);
  };
  static std::vector<std::unique_ptr<Storage>>& unused();

  int split(size_t chunk, uint32_t alignment);
  void make_async();
  void copy_to(size_t chunk, int from, int to);

  int64_t bytes_;
  int num_warps_;
  uint32_t generation_;
  std::unique_ptr<Storage> storage_;
  std::vector<uint8_t> levels_;  ///< by chunk
  std::vector<AsyncReads> async_;
  std::vector<LaneMask> async_warps_;
};

}  // namespace wide::simt
