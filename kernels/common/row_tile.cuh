// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Moves rows into shared memory and back, a few at a time and of a length known only at run time:
// by the lanes of a warp, or by a block's threads.
#pragma once

#include "kernels/common/numeric.cuh"
#include "kernels/common/tile.cuh"

namespace wide::kernels {

/// Row i of a tile is the operand's i-th.
struct RowsInTurn {
  __device__ bool has(int) const { return true; }
  __device__ int operator()(int row) const { return row; }
};

/// Some rows of an operand: the first row, the stride between them, their count and number of
/// elements; by `places` the i-th is so many strides behind the first. Aligned: all to 16 bytes.
template <class T, class Places = RowsInTurn>
struct TileRows {
  T* first;
  int64_t stride;
  int count, features;
  bool is_aligned;
  Places places{};
};

/// Threads that move rows together: this one's index, and their number, whole warps.
struct TileThreads {
  int thread, count;

  __device__ static TileThreads of_warp() { return {static_cast<int>(threadIdx.x % 32), 32}; }
  __device__ static TileThreads of_block() {
    return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  }
};

/// Calls move(row, chunk) for all of a thread's chunks: a row is moved by a power of two of
/// threads, which avoids divisions.
template <class Move>
__device__ inline void for_each_chunk(int rows, int chunks, const TileThreads& by,
                                      const Move& move) {
  const int bits = chunks <= 4 ? 2 : chunks <= 8 ? 3 : chunks <= 16 ? 4 : 5;
  for (int row = by.thread >> bits; row < rows; row += by.count >> bits) {
    for (int chunk = by.thread & ((1 << bits) - 1); chunk < chunks; chunk += 1 << bits) {
      move(row, chunk);
    }
  }
}

/// Starts loading `rows` rows, each zero-filled to a multiple of `kFilled` chunks; missing rows are
/// zeros. By cp.async where addresses allow.
template <class T, int rows, int kFilled, class Places = RowsInTurn>
__device__ inline void load_tile_rows(char* tile, int pitch, const TileRows<const T, Places>& from,
                                      const TileThreads& by) {
  constexpr int kVector = Vec16<T>::kSize;
  const int chunks = (from.features + kFilled * kVector - 1) / (kFilled * kVector) * kFilled;
  for_each_chunk(rows, chunks, by, [&](int row, int chunk) {
    const bool exists = row < from.count && from.places.has(row);
    const int left = exists ? min(from.features - chunk * kVector, kVector) : 0;
    // An address is formed only where something is read from it.
    const T* source =
        left > 0 ? from.first + from.places(row) * from.stride + chunk * kVector : from.first;
    char* to = tile + row * pitch + chunk * kChunkBytes;
    if (from.is_aligned) {
      arch::cp_async_16(to, source, max(left, 0) * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        reinterpret_cast<T*>(to)[e] = e < left ? source[e] : T{};
      }
    }
  });
}

/// The reverse, for a tile that is visible to all of the threads.
template <class T, class Places = RowsInTurn>
__device__ inline void store_tile_rows(const char* tile, int pitch, const TileRows<T, Places>& to,
                                       const TileThreads& by) {
  constexpr int kVector = Vec16<T>::kSize;
  const int chunks = (to.features + kVector - 1) / kVector;
  for_each_chunk(to.count, chunks, by, [&](int row, int chunk) {
    if (!to.places.has(row)) return;
    const int left = to.features - chunk * kVector;
    const Vec16<T> values =
        load_vec16(reinterpret_cast<const T*>(tile + row * pitch + chunk * kChunkBytes));
    T* y = to.first + to.places(row) * to.stride + chunk * kVector;
    if (to.is_aligned && left >= kVector) {
      store_vec16(y, values);
    } else {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        if (e < left) y[e] = values.v[e];
      }
    }
  });
}

}  // namespace wide::kernels
