// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Storage of shared memory's shadow, and its splitting.
#include "verify/simt/shared_shadow.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace wide::simt {

namespace {

constexpr size_t kMaxUnused = 8;  // storages kept for the next blocks

size_t num_cells(int64_t bytes, int level) {
  // Whole chunks, so that splitting the last one needs no bounds.
  const int64_t chunk = int64_t{1} << SharedShadow::kChunk;
  return static_cast<size_t>((bytes + chunk - 1) / chunk * chunk >> level);
}

/// Never 0, which is what new cells have, and never given twice.
uint32_t next_generation() {
  static uint32_t last = 0;
  return ++last;
}

}  // namespace

void SharedShadow::Storage::need(int level) {
  const auto at = static_cast<size_t>(level);
  if (cells[at] != nullptr) return;
  const size_t count = num_cells(bytes, level);
  cells[at] = std::make_unique<SharedCell[]>(count);
  // Not cleared: a cell's mask says which are valid.
  readers[at] =
      std::make_unique_for_overwrite<WarpReaders[]>(count * static_cast<size_t>(num_warps));
}

std::vector<std::unique_ptr<SharedShadow::Storage>>& SharedShadow::unused() {
  static std::vector<std::unique_ptr<Storage>> storages;
  return storages;
}

SharedShadow::SharedShadow(int64_t bytes, int num_warps)
    : bytes_(bytes), num_warps_(num_warps), generation_(next_generation()) {
  auto& storages = unused();
  const auto fitting = std::find_if(storages.rbegin(), storages.rend(), [&](const auto& storage) {
    return storage->bytes == bytes && storage->num_warps == num_warps;
  });
  if (fitting != storages.rend()) {
    storage_ = std::move(*fitting);
    storages.erase(std::next(fitting).base());
  } else {
    storage_ = std::make_unique<Storage>();
    storage_->bytes = bytes;
    storage_->num_warps = num_warps;
    storage_->need(kCoarsest);
  }
  levels_.assign(num_cells(bytes, kChunk), static_cast<uint8_t>(kCoarsest));
}

SharedShadow::~SharedShadow() {
  auto& storages = unused();
  if (storages.size() == kMaxUnused) storages.erase(storages.begin());
  storages.push_back(std::move(storage_));
}

int SharedShadow::split(size_t chunk, uint32_t alignment) {
  const int from = levels_[chunk];
  const int to = std::countr_zero(alignment);
  storage_->need(to);
  copy_to(chunk, from, to);
  levels_[chunk] = static_cast<uint8_t>(to);
  return to;
}

void SharedShadow::copy_to(size_t chunk, int from, int to) {
  const size_t count = size_t{1} << (kChunk - from);
  const size_t pieces = size_t{1} << (from - to);
  for (size_t i = chunk * count; i < (chunk + 1) * count; ++i) {
    const SharedCell& whole = storage_->cells[static_cast<size_t>(from)][i];
    if (whole.generation != generation_) continue;  // then its pieces are not of this block either
    for (size_t piece = i * pieces; piece < (i + 1) * pieces; ++piece) {
      storage_->cells[static_cast<size_t>(to)][piece] = whole;
      for (LaneMask warps = whole.readers; warps != 0; warps &= warps - 1) {
        const int warp = std::countr_zero(warps);
        readers(to, piece, warp) = readers(from, i, warp);
      }
    }
  }
}

void SharedShadow::make_async() {
  const size_t units = num_cells(bytes_, kCoarsest);
  async_.resize(units * static_cast<size_t>(num_warps_));
  async_warps_.resize(units);
}

}  // namespace wide::simt
