// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/byte_rows.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace wide {

namespace {

/// Of an element or two, where a call each would take longer than the copy.
template <size_t bytes>
void copy_short_rows(const RowBlock& block) {
  for (int64_t i = 0; i < block.num_rows; ++i) {
    std::array<char, bytes> row;
    std::memcpy(row.data(), block.source + i * block.source_step, bytes);
    std::memcpy(block.destination + i * block.destination_step, row.data(), bytes);
  }
}

}  // namespace

ByteRows byte_rows(const ConstTensorView& source, const Strides& destination) {
  ByteRows rows;
  const int64_t bytes = dtype_bytes(source.dtype);
  rows.row_bytes = bytes;
  for (int axis = source.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = source.shape[axis];
    if (extent == 1) continue;  // nothing steps along it
    const int64_t from = source.strides[axis] * bytes, to = destination[axis] * bytes;
    if (rows.num_loops == 0 && from == rows.row_bytes && to == rows.row_bytes) {
      rows.row_bytes *= extent;
      continue;
    }
    if (rows.num_loops > 0) {
      ByteRows::Loop& inner = rows.loops[static_cast<size_t>(rows.num_loops - 1)];
      if (from == inner.source_step * inner.extent && to == inner.destination_step * inner.extent) {
        inner.extent *= extent;
        continue;
      }
    }
    rows.loops[static_cast<size_t>(rows.num_loops++)] = {extent, from, to};
  }
  return rows;
}

void copy_block(const RowBlock& block) {
  if (block.row_bytes == 1) return copy_short_rows<1>(block);
  if (block.row_bytes == 2) return copy_short_rows<2>(block);
  if (block.row_bytes == 4) return copy_short_rows<4>(block);
  if (block.row_bytes == 8) return copy_short_rows<8>(block);
  for (int64_t i = 0; i < block.num_rows; ++i) {
    std::memmove(block.destination + i * block.destination_step,
                 block.source + i * block.source_step, static_cast<size_t>(block.row_bytes));
  }
}

bool lies_apart(const ConstTensorView& view) {
  std::array<std::pair<int64_t, int64_t>, kMaxRank> axes{};  // stride, extent; none: zeros
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.shape[axis] == 0) return true;
    axes[static_cast<size_t>(axis)] = {view.strides[axis], view.shape[axis]};
  }
  std::sort(axes.begin(), axes.end());
  int64_t span = 1;  // of the smaller strides
  for (const auto& [stride, extent] : axes) {
    if (extent <= 1) continue;
    if (stride < span) return false;
    span += stride * (extent - 1);
  }
  return true;
}

}  // namespace wide
