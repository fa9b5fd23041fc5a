// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Strided views as the units of copies and fills: rows of contiguous bytes, many of which one call
// takes where they are equidistant.
#pragma once

#include <array>
#include <cstdint>

#include "wide/tensor.hpp"

namespace wide {

/// Two views of one shape and dtype: where they lie, row by row.
struct ByteRows {
  struct Loop {
    int64_t extent = 1;
    int64_t source_step = 0, destination_step = 0;  ///< bytes
  };
  int64_t row_bytes = 0;  ///< contiguous in both
  int num_loops = 0;
  std::array<Loop, kMaxRank> loops{};  ///< over rows, the innermost first
};

/// Rows as long and loops as few as the strides allow. For views with elements.
ByteRows byte_rows(const ConstTensorView& source, const Strides& destination);

/// What one call copies.
struct RowBlock {
  const char* source = nullptr;
  char* destination = nullptr;
  int64_t row_bytes = 0, num_rows = 1;
  int64_t source_step = 0, destination_step = 0;  ///< bytes from row to row
};

template <class Block>
void for_each_block(const ByteRows& rows, const char* source, char* destination, const Block& block,
                    int loop) {
  const ByteRows::Loop& own = rows.loops[static_cast<size_t>(loop > 0 ? loop : 0)];
  if (loop <= 0) {
    block(RowBlock{source, destination, rows.row_bytes, own.extent, own.source_step,
                   own.destination_step});
    return;
  }
  for (int64_t i = 0; i < own.extent; ++i) {
    for_each_block(rows, source + i * own.source_step, destination + i * own.destination_step,
                   block, loop - 1);
  }
}

/// Calls `block` for the blocks of these rows, from the first to the last.
template <class Block>
void for_each_block(const ByteRows& rows, const void* source, void* destination,
                    const Block& block) {
  for_each_block(rows, static_cast<const char*>(source), static_cast<char*>(destination), block,
                 rows.num_loops - 1);
}

/// On the CPU.
void copy_block(const RowBlock& block);

/// All of them, on the CPU, between views that do not overlap. Where neighbours in one view are far
/// apart in the other, as in a transpose, squares of elements keep the lines of both near.
void copy_rows(const ByteRows& rows, const void* source, void* destination);

/// False where elements may share a place: a stride of 0, or one that is shorter than the span of
/// the smaller ones.
bool lies_apart(const ConstTensorView& view);

/// Whether an element of one has a byte of the other's: of two views of one shape, dtype and
/// device, the same strides along axes of more than one element, and lies_apart().
bool share_elements(const ConstTensorView& a, const ConstTensorView& b);

}  // namespace wide
