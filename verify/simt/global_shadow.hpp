// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The shadow of one buffer. 1 KiB that only whole copies and fills touched is one cell; what
// kernels touch is split into cells of 16 bytes, or less where an access needs it, and can become
// one cell again after a launch where all of it was used alike. So memory is taken for what
// launches touch, not for what is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "verify/simt/locations.hpp"

namespace wide::simt {

/// A thread of the operation that the cell names. Time 0: nobody.
struct GlobalToucher {
  uint32_t block = 0, time = 0;
  uint32_t thread : 10 = 0;
  uint32_t is_strong : 1 = 0;
  uint32_t location : Locations::kBits = 0;
};

struct alignas(64) GlobalCell {  // a line of the cache
  /// The last one, and one before it that the last one did not know of: of another block where
  /// there is one, else of another warp, else of another thread. Writers: of atomics.
  std::array<GlobalToucher, 2> write{}, read{};
  uint32_t writer_operation = 0, reader_operation = 0;
  uint32_t first_block = 0;  ///< that read it in the reader's operation
  uint32_t is_initialised : 1 = 0;
  uint32_t is_read_only : 1 = 0;      ///< the reader's operation has read it by ld.global.nc
  uint32_t earlier_readers : 30 = 0;  ///< a set of Operations
};
static_assert(sizeof(GlobalCell) == 64);

class GlobalShadow {
 public:
  static constexpr int kChunk = 10, kCoarsest = 4;  ///< levels are powers of two in bytes
  static constexpr int64_t kChunkBytes = int64_t{1} << kChunk;

  GlobalShadow(int64_t bytes, bool is_initialised);

  /// A kernel's access: calls function(cell, offset, bytes) for every cell of the range.
  template <class Function>
  void for_cells(int64_t offset, int64_t bytes, const Function& function) {
    for_pieces(offset, bytes, [&](int64_t index, int64_t begin, int64_t end) {
      Chunk& chunk = this->chunk(index);
      split(chunk, index, begin | end);
      for_chunk(chunk, index, begin, end, function);
    });
  }

  /// A host's access to a range: the same, but what is alike stays one cell. `is_overwritten`: the
  /// function leaves every cell alike.
  template <class Function>
  void for_range(int64_t offset, int64_t bytes, bool is_overwritten, const Function& function) {
    for_pieces(offset, bytes, [&](int64_t index, int64_t begin, int64_t end) {
      Chunk& chunk = this->chunk(index);
      if (!is_whole(index, begin, end)) split(chunk, index, begin | end);
      for_chunk(chunk, index, begin, end, function);
      if (is_overwritten && is_whole(index, begin, end)) merge(chunk);
    });
  }

  /// How many of at most `bytes` bytes from `offset` on are (un)initialised like the first.
  int64_t initialised_run(int64_t offset, int64_t bytes, bool& is_initialised);
  void set_initialised(int64_t offset, int64_t bytes, bool is_initialised);

  /// Makes one cell again of each kilobyte that was used alike. Between launches only.
  void merge_alike();
  /// Cells of all shadows that exist now; kilobytes that are one cell do not count.
  static int64_t num_cells();

 private:
  /// Arrays of cells go back to where the next ones are taken from: their pages are there already.
  struct Recycle {
    Recycle() : level(0) {}
    explicit Recycle(int of_level) : level(of_level) {}
    int level;
    void operator()(GlobalCell* cells) const;
  };
  using Cells = std::unique_ptr<GlobalCell[], Recycle>;
  static Cells make_cells(int level);

  struct Chunk {
    GlobalCell all;  ///< while there are no cells
    Cells cells;     ///< of 1 << level bytes
    int level = kChunk;
  };
  static constexpr int64_t kPage = 1024;  ///< chunks that are made together
  using Page = std::array<Chunk, kPage>;

  Chunk& chunk(int64_t index) {
    std::unique_ptr<Page>& page = pages_[static_cast<size_t>(index / kPage)];
    if (page == nullptr) make(page);
    return (*page)[static_cast<size_t>(index % kPage)];
  }
  void make(std::unique_ptr<Page>& page) const;

  /// Calls function(chunk index, begin, end) with offsets in the buffer.
  template <class Function>
  static void for_pieces(int64_t offset, int64_t bytes, const Function& function) {
    for (const int64_t end = offset + bytes; offset < end;) {
      const int64_t index = offset >> kChunk;
      const int64_t stop = std::min(end, (index + 1) << kChunk);
      function(index, offset, stop);
      offset = stop;
    }
  }
  template <class Function>
  static void for_chunk(Chunk& chunk, int64_t index, int64_t begin, int64_t end,
                        const Function& function) {
    if (chunk.cells == nullptr) {
      function(chunk.all, begin, end - begin);
      return;
    }
    const int64_t first = index << kChunk, cell_bytes = int64_t{1} << chunk.level;
    GlobalCell* cell = chunk.cells.get() + ((begin - first) >> chunk.level);
    for (; begin < end; begin += cell_bytes) function(*cell++, begin, cell_bytes);
  }
  bool is_whole(int64_t index, int64_t begin, int64_t end) const {
    return begin == index << kChunk && end == std::min((index + 1) << kChunk, bytes_);
  }

  /// Makes cells that `alignment`, begin and end of an access, are multiples of.
  void split(Chunk& chunk, int64_t index, int64_t alignment) {
    const bool fits =
        chunk.cells != nullptr && (alignment & ((int64_t{1} << chunk.level) - 1)) == 0;
    if (!fits) split_to(chunk, index, alignment);
  }
  void split_to(Chunk& chunk, int64_t index, int64_t alignment);
  /// All cells are as the first one.
  static void merge(Chunk& chunk);

  int64_t bytes_;
  bool is_initialised_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<int64_t> split_;  ///< chunks that were, since they were last merged
};

}  // namespace wide::simt
