// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a block of the routed GEMMs: which they are, and a tile's way to them. Nothing of a
// routing is trusted: a row outside of the operands is none.
#pragma once

#include "kernels/arch/load.cuh"
#include "kernels/common/routed_block.cuh"
#include "kernels/linear/linear_tile.cuh"
#include "kernels/linear/routed_linear_params.hpp"

namespace wide::kernels {

/// Where the rows of a block's tile are, in shared memory.
struct RoutedTable {
  static constexpr int32_t kNone = -1;
  int32_t x[kRoutedTile], y[kRoutedTile];  ///< of all rows, or kNone
  float gates[kRoutedTile];
};

/// The rows of a slot of `tile_rows`, or of one member alone; there may be none.
__device__ inline RoutedBlock locate_rows(const RoutedLinearParams& params, uint32_t slot,
                                          int32_t tile_rows) {
  const RoutedSlots slots{params.first_rows, static_cast<int32_t>(params.linear.m),
                          static_cast<uint32_t>(params.linear.num_members), tile_rows};
  RoutedMember found;
  uint32_t tile = slot;
  if (params.member < 0) {
    found = member_of_slot(slots, slot);
    tile -= first_slot(found, tile_rows);
  } else {
    const auto member = static_cast<uint32_t>(params.member);
    const bool is_last = member == slots.num_members;
    found = {member, member == 0 ? 0 : first_row(slots, member),
             is_last ? slots.num_rows : first_row(slots, member + 1)};
  }
  return rows_of_tile(found, tile, tile_rows);
}

/// The place of a row of the block, and its gate where it has one.
struct RoutedPlaces {
  int32_t x, y;  ///< or both RoutedTable::kNone
  float gate;
};
__device__ inline RoutedPlaces find_row(const RoutedLinearParams& params, const RoutedBlock& block,
                                        int32_t i) {
  const int32_t in_order = block.first + i;
  int32_t row = RoutedTable::kNone;
  if (i < block.count) row = arch::load(params.order + in_order);
  if (row < 0 || row >= params.linear.m) return {RoutedTable::kNone, RoutedTable::kNone, 0};
  const uint32_t read = static_cast<uint32_t>(row) / static_cast<uint32_t>(params.choices);
  return {params.gathers ? static_cast<int32_t>(read) : in_order, params.scatters ? row : in_order,
          params.gates != nullptr ? arch::load(params.gates + row) : 0};
}

/// Fills the table by the first threads of the block. Followed by a barrier, but for the gates,
/// which are for the tile's end: their load depends on that of the order.
__device__ inline void find_rows(const RoutedLinearParams& params, const RoutedBlock& block,
                                 RoutedTable& table) {
  const auto i = static_cast<int32_t>(threadIdx.x);
  if (i >= kRoutedTile) return;
  const RoutedPlaces found = find_row(params, block, i);
  table.x[i] = found.x;
  table.y[i] = found.y;
  table.gates[i] = found.gate;
}

/// Source<T> of a table's rows. `copies` are those that this thread copies in every stage, found
/// once; bit i of `existing`: whether there is one.
template <class T, int kCopies>
struct RoutedSource {
  const T* base;
  int64_t row_stride;
  bool is_aligned;
  const int32_t* places;  ///< shared memory
  const T* copies[kCopies];
  uint32_t existing;

  __device__ bool has_row(int row) const { return places[row] != RoutedTable::kNone; }
  __device__ int place(int row) const { return places[row]; }
};

/// As linear_tile.cuh's.
template <class T, int rows, int group, int threads, int kCopies, class... Hint>
__device__ inline void load_tile(char* tile, const RoutedSource<T, kCopies>& source,
                                 int64_t first_k, int64_t k_left, const Hint&... hint) {
  const auto place = [](int row, int chunk) { return chunk_offset<group>(row, chunk); };
  if (!source.is_aligned) {
    return read_rows<T, rows, kChunks, threads, rows>(tile, source, first_k, k_left, place);
  }
  constexpr int kSize = static_cast<int>(sizeof(T)), kVector = kChunkBytes / kSize;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int first_row = static_cast<int>(threadIdx.x) / kChunks;
  const auto left = static_cast<int>(min(k_left, static_cast<int64_t>(kRowBytes / kSize)));
  const int bytes = min(max(left - chunk * kVector, 0), kVector) * kSize;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const bool exists = (source.existing >> i & 1u) != 0;
    arch::cp_async_16(tile + place(first_row + i * (threads / kChunks), chunk),
                      source.copies[i] + first_k + chunk * kVector, exists ? bytes : 0, hint...);
  }
}

/// Destination<T> of a table's rows.
template <class T>
struct RoutedDestination : Destination<T> {
  const int32_t* places;  ///< shared memory
  const float* gates;     ///< shared memory, or null

  __device__ bool has_row(int row) const { return places[row] != RoutedTable::kNone; }
  __device__ int place(int row) const { return places[row]; }
  template <int kSize>
  __device__ void gate(int row, float (&values)[kSize]) const {
    if (gates == nullptr) return;
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] *= gates[row];
  }
};

/// TileRows of a table: a tile is computed as if it began at row 0.
struct RoutedRows {
  const RoutedTable& table;
  bool has_gates;

  template <int rows, int threads, class T>
  __device__ auto source(const Source<T>& x) const {
    constexpr int kStep = threads / kChunks;
    static_assert(rows % kStep == 0 && threads % kChunks == 0, "every thread copies as many");
    RoutedSource<T, rows / kStep> routed{x.base, x.row_stride, x.is_aligned, table.x, {}, 0};
#pragma unroll
    for (int i = 0; i < rows / kStep; ++i) {
      const int row = static_cast<int>(threadIdx.x) / kChunks + i * kStep;
      const bool exists = routed.has_row(row);
      routed.copies[i] = exists ? x.base + routed.place(row) * x.row_stride : x.base;
      routed.existing |= static_cast<uint32_t>(exists) << i;
    }
    return routed;
  }
  template <class T>
  __device__ RoutedDestination<T> destination(const Destination<T>& y) const {
    return {y, table.y, has_gates ? table.gates : nullptr};
  }
};

}  // namespace wide::kernels
