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

/// Strides with their extents, the smallest first; axes that a view has not: zeros.
using Axes = std::array<std::pair<int64_t, int64_t>, kMaxRank>;
Axes sorted_axes(const ConstTensorView& view) {
  Axes axes{};
  for (int axis = 0; axis < view.rank(); ++axis) {
    axes[static_cast<size_t>(axis)] = {view.strides[axis], view.shape[axis]};
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Whether steps between elements along the first `count` of these axes, of a view that lies apart,
/// come within an element's `bytes` of `distance`. Smaller axes reach less than one step of a
/// larger one: of that, two numbers of steps come into question.
bool is_near_step(const Axes& axes, size_t count, int64_t distance, int64_t bytes) {
  while (count > 0 && axes[count - 1].second <= 1) --count;
  if (count == 0) return -bytes < distance && distance < bytes;
  const int64_t step = axes[count - 1].first * bytes, most = axes[count - 1].second - 1;
  const int64_t below = distance / step - (distance < 0 ? 1 : 0);
  for (const int64_t steps : {below, below + 1}) {
    if (steps < -most || steps > most) continue;
    if (is_near_step(axes, count - 1, distance - steps * step, bytes)) return true;
  }
  return false;
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

void copy_rows(const ByteRows& rows, const void* source, void* destination) {
  constexpr int64_t kSide = 16;  // fp32: a line of 64 bytes
  if (rows.num_loops < 2 || rows.row_bytes > 8)
    return for_each_block(rows, source, destination, copy_block);
  ByteRows outer = rows;
  const auto begin = outer.loops.begin(), end = begin + rows.num_loops;
  std::iter_swap(begin + 1, std::min_element(begin + 1, end, [](const auto& a, const auto& b) {
                   return a.source_step < b.source_step;
                 }));
  const ByteRows::Loop inner = outer.loops[0], across = outer.loops[1];
  outer.num_loops -= 2;
  std::fill(std::move(begin + 2, end, begin), end, ByteRows::Loop{});
  for_each_block(outer, source, destination, [&](const RowBlock& plane) {
    for (int64_t p = 0; p < plane.num_rows; ++p) {
      const char* from = plane.source + p * plane.source_step;
      char* to = plane.destination + p * plane.destination_step;
      for (int64_t first = 0; first < across.extent; first += kSide) {
        for (int64_t i = 0; i < inner.extent; i += kSide) {
          for (int64_t j = first; j < std::min(first + kSide, across.extent); ++j) {
            copy_block({from + j * across.source_step + i * inner.source_step,
                        to + j * across.destination_step + i * inner.destination_step,
                        rows.row_bytes, std::min(kSide, inner.extent - i), inner.source_step,
                        inner.destination_step});
          }
        }
      }
    }
  });
}

bool lies_apart(const ConstTensorView& view) {
  if (std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end()) return true;
  int64_t span = 1;  // of the smaller strides
  for (const auto& [stride, extent] : sorted_axes(view)) {
    if (extent <= 1) continue;
    if (stride < span) return false;
    span += stride * (extent - 1);
  }
  return true;
}

bool share_elements(const ConstTensorView& a, const ConstTensorView& b) {
  const int64_t a_bytes = a.span_bytes(), b_bytes = b.span_bytes();
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto from = reinterpret_cast<uintptr_t>(a.data), to = reinterpret_cast<uintptr_t>(b.data);
  const uintptr_t distance = from < to ? to - from : from - to;
  if (distance >= static_cast<uintptr_t>(from < to ? a_bytes : b_bytes)) return false;
  return is_near_step(sorted_axes(a), kMaxRank, static_cast<int64_t>(distance),
                      dtype_bytes(a.dtype));
}

}  // namespace wide
