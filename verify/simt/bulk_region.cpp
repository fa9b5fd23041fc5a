// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where a box lies in its tensor. Coordinates may be negative or past the end; extents are below
// 2^32 and strides below 2^40, so that 64 bits hold every offset of a row that lies inside.
#include "verify/simt/bulk_region.hpp"

#include <algorithm>
#include <cstring>

namespace wide::simt {

BulkRegion::BulkRegion(uint32_t shared, uint64_t global, int64_t bytes)
    : shared_(shared), global_(global), row_bytes_(bytes), end_(bytes) {}

BulkRegion::BulkRegion(uint32_t shared, const TensorMap& map, std::span<const int32_t> coordinates)
    : shared_(shared),
      swizzle_(map.swizzle),
      fills_nan_(map.fills_nan != 0),
      element_bytes_(map.element_bytes),
      global_(map.address),
      row_bytes_(int64_t{map.box[0]} * map.element_bytes) {
  const auto extent = static_cast<int64_t>(map.extent[0]);
  const int64_t first = coordinates[0];
  begin_ = std::clamp<int64_t>(-first, 0, map.box[0]) * element_bytes_;
  end_ = std::clamp<int64_t>(extent - first, 0, map.box[0]) * element_bytes_;
  global_ += static_cast<uint64_t>(first * element_bytes_ + begin_);
  for (size_t i = 1; i < coordinates.size(); ++i) {
    // An element stride of s takes every s-th element of the box.
    const int64_t stride = map.element_stride[i], start = coordinates[i];
    const auto end = static_cast<int64_t>(map.extent[i]);
    count_[i - 1] = (map.box[i] + stride - 1) / stride;
    first_[i - 1] = start >= 0 ? 0 : (-start + stride - 1) / stride;
    last_[i - 1] = end > start ? (end - 1 - start) / stride : -1;
    step_bytes_[i - 1] = stride * static_cast<int64_t>(map.stride_bytes[i - 1]);
    global_ += static_cast<uint64_t>(start) * map.stride_bytes[i - 1];
  }
}

BulkRegion BulkRegion::as_store() const {
  BulkRegion store = *this;
  if (begin_ < end_)
    store.end_ = std::min(row_bytes_, begin_ + (end_ - begin_ + kPiece - 1) / kPiece * kPiece);
  return store;
}

template <class Function>
void BulkRegion::for_pieces(int64_t index, const Function& function) const {
  const auto begin = static_cast<uint32_t>(shared_ + index * row_bytes_);
  if (swizzle_ == Swizzle::none) {
    function(begin, int64_t{0}, row_bytes_);
    return;
  }
  for (int64_t offset = 0; offset < row_bytes_; offset += kPiece) {
    function(swizzled(begin + static_cast<uint32_t>(offset), swizzle_), offset, kPiece);
  }
}

void BulkRegion::scatter(std::byte* tile, int64_t index, const std::byte* row) const {
  for_pieces(index, [&](uint32_t address, int64_t offset, int64_t bytes) {
    std::memcpy(tile + (address - shared_), row + offset, static_cast<size_t>(bytes));
  });
}

void BulkRegion::gather(const std::byte* tile, int64_t index, std::byte* row) const {
  for_pieces(index, [&](uint32_t address, int64_t offset, int64_t bytes) {
    std::memcpy(row + offset, tile + (address - shared_), static_cast<size_t>(bytes));
  });
}

void BulkRegion::fill(std::byte* row, int64_t bytes) const {
  std::memset(row, fills_nan_ ? 0xff : 0, static_cast<size_t>(bytes));
  if (!fills_nan_) return;
  // The canonical NaN: all bits but the sign.
  for (int64_t i = element_bytes_ - 1; i < bytes; i += element_bytes_) row[i] = std::byte{0x7f};
}

}  // namespace wide::simt
