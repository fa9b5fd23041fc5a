// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads rows of an operand into shared memory, by cp.async where addresses allow, else element by
// element. Missing rows and the missing end of a row become zeros, so that kernels multiply whole
// tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/arch/cp_async.cuh"

namespace wide::kernels {

constexpr int kChunkBytes = 16;

/// One operand of a block: rows [0, num_rows) of `base`, the elements of a row contiguous.
template <class T>
struct Source {
  const T* base;
  int64_t row_stride;
  int num_rows;
  bool is_aligned;  ///< base and rows aligned to 16 bytes

  __device__ bool has_row(int row) const { return row < num_rows; }
  __device__ int place(int row) const { return row; }
};

/// Loads `rows` rows of `chunks` times 16 bytes into the tile element by element, starting at
/// element `first` of each row, of which `left` exist. place(row, chunk) is the chunk's first byte
/// in the tile. From: Source<T>, or one whose rows are elsewhere: has_row(), place().
template <class T, int rows, int chunks, int threads, int unroll, class From, class Place>
__device__ inline void read_rows(char* tile, const From& source, int64_t first, int64_t left,
                                 const Place& place, int thread = static_cast<int>(threadIdx.x)) {
  constexpr int per_row = chunks * kChunkBytes / static_cast<int>(sizeof(T));
  constexpr int pieces = rows * per_row / threads;
  static_assert(pieces * threads == rows * per_row, "every thread copies equally many elements");
  constexpr int kUnroll = std::min(unroll, 8);
#pragma unroll kUnroll
  for (int i = 0; i < pieces; ++i) {
    const int index = thread + i * threads;
    const int row = index / per_row, column = index % per_row;
    T value{};
    if (source.has_row(row) && column < left) {
      value = source.base[source.place(row) * source.row_stride + first + column];
    }
    const int byte = column * static_cast<int>(sizeof(T));
    *reinterpret_cast<T*>(tile + place(row, byte / kChunkBytes) + byte % kChunkBytes) = value;
  }
}

/// The same, by cp.async where addresses allow. Copies are issued `unroll` at a time: their
/// addresses occupy registers throughout a kernel's loop. By the block's threads, or by those that
/// `thread` enumerates.
template <class T, int rows, int chunks, int threads, int unroll, class Place>
__device__ inline void load_rows(char* tile, const Source<T>& source, int64_t first, int64_t left,
                                 const Place& place, int thread = static_cast<int>(threadIdx.x)) {
  if (!source.is_aligned) {
    return read_rows<T, rows, chunks, threads, unroll>(tile, source, first, left, place, thread);
  }
  constexpr int vector = kChunkBytes / static_cast<int>(sizeof(T));
  constexpr int pieces = rows * chunks, per_row = chunks * vector;
  constexpr int kUnroll = std::min(unroll, (pieces + threads - 1) / threads);
  const int valid_columns = static_cast<int>(min(left, static_cast<int64_t>(per_row)));
#pragma unroll kUnroll
  for (int i = 0; i < (pieces + threads - 1) / threads; ++i) {
    const int index = thread + i * threads;
    if (pieces % threads != 0 && index >= pieces) break;
    const int row = index / chunks, chunk = index % chunks;
    const int valid =
        row < source.num_rows ? min(max(valid_columns - chunk * vector, 0), vector) : 0;
    // An address is formed only where something is read from it.
    const T* from =
        valid > 0 ? source.base + row * source.row_stride + first + chunk * vector : source.base;
    arch::cp_async_16(tile + place(row, chunk), from, valid * static_cast<int>(sizeof(T)));
  }
}

}  // namespace wide::kernels
