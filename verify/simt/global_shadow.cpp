// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Splitting and merging of a buffer's shadow.
#include "verify/simt/global_shadow.hpp"

#include <bit>

namespace wide::simt {

namespace {

constexpr int64_t kMaxUnusedCells = (int64_t{64} << 20) / int64_t{sizeof(GlobalCell)};
int64_t unused_cells = 0, live_cells = 0;

/// Arrays to use again; never destroyed, since memories may be until the process ends.
std::vector<GlobalCell*>& unused(int level) {
  using Arrays = std::array<std::vector<GlobalCell*>, GlobalShadow::kCoarsest + 1>;
  static Arrays& arrays = *new Arrays;
  return arrays[static_cast<size_t>(level)];
}

/// For whatever comes after the launch: threads and blocks mean nothing then, lines do.
bool is_alike(const GlobalCell& a, const GlobalCell& b) {
  return a.writer_operation == b.writer_operation && a.reader_operation == b.reader_operation &&
         a.is_initialised == b.is_initialised && a.earlier_readers == b.earlier_readers &&
         a.write[0].location == b.write[0].location && a.read[0].location == b.read[0].location;
}

}  // namespace

GlobalShadow::GlobalShadow(int64_t bytes, bool is_initialised)
    : bytes_(bytes), is_initialised_(is_initialised) {
  const int64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  pages_.resize(static_cast<size_t>((chunks + kPage - 1) / kPage));
}

void GlobalShadow::make(std::unique_ptr<Page>& page) const {
  page = std::make_unique<Page>();
  if (!is_initialised_) return;
  for (Chunk& chunk : *page) chunk.all.is_initialised = 1;
}

GlobalShadow::Cells GlobalShadow::make_cells(int level) {
  const int64_t count = int64_t{1} << (kChunk - level);
  live_cells += count;
  std::vector<GlobalCell*>& arrays = unused(level);
  if (arrays.empty()) return Cells(new GlobalCell[static_cast<size_t>(count)], Recycle{level});
  GlobalCell* cells = arrays.back();
  arrays.pop_back();
  unused_cells -= count;
  return Cells(cells, Recycle{level});
}

void GlobalShadow::Recycle::operator()(GlobalCell* cells) const {
  const int64_t count = int64_t{1} << (kChunk - level);
  live_cells -= count;
  if (unused_cells + count > kMaxUnusedCells) {
    delete[] cells;
    return;
  }
  unused_cells += count;
  unused(level).push_back(cells);
}

int64_t GlobalShadow::num_cells() {
  return live_cells;
}

void GlobalShadow::split_to(Chunk& chunk, int64_t index, int64_t alignment) {
  const int aligned =
      alignment == 0 ? kCoarsest : std::countr_zero(static_cast<uint64_t>(alignment));
  const int level = std::min(aligned, kCoarsest);
  const int count = 1 << (kChunk - level);
  if (chunk.cells == nullptr) split_.push_back(index);
  Cells cells = make_cells(level);
  const GlobalCell* whole = chunk.cells == nullptr ? &chunk.all : chunk.cells.get();
  for (int i = 0; i < count; ++i) cells[static_cast<size_t>(i)] = whole[i >> (chunk.level - level)];
  chunk.cells = std::move(cells);
  chunk.level = level;
}

void GlobalShadow::merge(Chunk& chunk) {
  if (chunk.cells == nullptr) return;
  chunk.all = chunk.cells[0];
  chunk.cells.reset();
  chunk.level = kChunk;
}

int64_t GlobalShadow::initialised_run(int64_t offset, int64_t bytes, bool& is_initialised) {
  const int64_t index = offset >> kChunk;
  const int64_t end = std::min(offset + bytes, (index + 1) << kChunk);
  const Chunk& chunk = this->chunk(index);
  if (chunk.cells == nullptr) {
    is_initialised = chunk.all.is_initialised != 0;
    return end - offset;
  }
  const auto at = [&](int64_t place) {
    const int64_t cell = (place - (index << kChunk)) >> chunk.level;
    return chunk.cells[static_cast<size_t>(cell)].is_initialised != 0;
  };
  is_initialised = at(offset);
  int64_t stop = offset;
  while (stop < end && at(stop) == is_initialised)
    stop = (stop >> chunk.level << chunk.level) + (int64_t{1} << chunk.level);
  return std::min(stop, end) - offset;
}

void GlobalShadow::set_initialised(int64_t offset, int64_t bytes, bool is_initialised) {
  while (bytes > 0) {
    bool was = false;
    const int64_t run = initialised_run(offset, bytes, was);
    if (was != is_initialised) {
      for_range(offset, run, false,
                [&](GlobalCell& cell, int64_t, int64_t) { cell.is_initialised = is_initialised; });
    }
    offset += run;
    bytes -= run;
  }
}

void GlobalShadow::merge_alike() {
  std::erase_if(split_, [this](int64_t index) {
    Chunk& chunk = this->chunk(index);
    if (chunk.cells == nullptr) return true;
    // Cells past the buffer's end were never touched.
    const int64_t bytes = std::min(bytes_ - (index << kChunk), kChunkBytes);
    const int64_t count = (bytes + (int64_t{1} << chunk.level) - 1) >> chunk.level;
    const GlobalCell* cells = chunk.cells.get();
    for (int64_t i = 1; i < count; ++i) {
      if (!is_alike(cells[i], cells[0])) return false;
    }
    merge(chunk);
    return true;
  });
}

}  // namespace wide::simt
