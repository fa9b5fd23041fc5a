// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tiles of a GEMM from global to shared memory, for all kernels of this folder.
//
// A tile row in shared memory is 128 bytes of k (32 fp32 or 64 16-bit values), in eight chunks of
// 16. Chunk c of row r is stored at c ^ (r / group % 8): eight lanes that fill a row, and eight
// lanes that read the same chunk of eight rows `group` apart, touch all 32 banks once. Beyond the
// operand's rows and beyond k are zeros, so that a kernel multiplies whole tiles.
#pragma once

#include <cstdint>

#include "kernels/arch/prefetch.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/common/tile.cuh"
#include "kernels/linear/linear_epilogue.cuh"
#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

constexpr int kRowBytes = 128;  // of a tile in shared memory: all banks once
constexpr int kChunks = kRowBytes / kChunkBytes;

/// The offset of row `row`'s chunk `chunk` in a tile.
template <int group>
__device__ inline int chunk_offset(int row, int chunk) {
  return row * kRowBytes + ((chunk ^ (row / group % kChunks)) * kChunkBytes);
}

/// Starts loading `rows` rows of k from `first_k` on into the tile; k_left of k exist. `hint`:
/// none, or cp_async_16's. A warp issues these between its products, which leave few slots for
/// address arithmetic: a thread's copies are in one column, an addition apart. Nothing is read from
/// missing rows, wherever their addresses point.
template <class T, int rows, int group, int threads, class... Hint>
__device__ inline void load_tile(char* tile, const Source<T>& source, int64_t first_k,
                                 int64_t k_left, const Hint&... hint) {
  const auto place = [](int row, int chunk) { return chunk_offset<group>(row, chunk); };
  if (!source.is_aligned) {
    return read_rows<T, rows, kChunks, threads, rows>(tile, source, first_k, k_left, place);
  }
  constexpr int kSize = static_cast<int>(sizeof(T)), kVector = kChunkBytes / kSize;
  static_assert(threads % kChunks == 0, "every thread has one chunk of its rows");
  constexpr int kStep = threads / kChunks, kCopies = (rows + kStep - 1) / kStep;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int first_row = static_cast<int>(threadIdx.x) / kChunks;
  const auto left = static_cast<int>(min(k_left, static_cast<int64_t>(kRowBytes / kSize)));
  const int bytes = min(max(left - chunk * kVector, 0), kVector) * kSize;
  const T* from = source.base + first_row * source.row_stride + first_k + chunk * kVector;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int row = first_row + i * kStep;
    if (rows % kStep != 0 && row >= rows) break;
    arch::cp_async_16(tile + place(row, chunk), from, row < source.num_rows ? bytes : 0, hint...);
    from += kStep * source.row_stride;
  }
}

/// Which rows of x and y a tile's are: those from first_m on. A kernel whose rows are elsewhere has
/// a type of its own, with both functions.
struct TileRows {
  template <int rows, int threads, class T>
  __device__ const Source<T>& source(const Source<T>& x) const {
    return x;
  }
  template <class T>
  __device__ const Destination<T>& destination(const Destination<T>& y) const {
    return y;
  }
};

/// What the tile of `member` at (first_m, first_n) reads and writes; at most `rows` by
/// `columns`.
template <class T, class Out = T>
struct TileOperands {
  Source<T> x, weight;
  Destination<Out> y;
};

template <class T>
__device__ inline Destination<T> tile_destination(const LinearParams& params, int64_t member,
                                                  int64_t first_m, int64_t first_n, int rows,
                                                  int columns) {
  const int num_rows = static_cast<int>(min(params.m - first_m, static_cast<int64_t>(rows)));
  const int num_columns = static_cast<int>(min(params.n - first_n, static_cast<int64_t>(columns)));
  return destination_of<T>(params.epilogue, static_cast<T*>(params.y), params.y_strides, member,
                           first_m, first_n, num_rows, num_columns, params.y_is_aligned);
}

template <class T, class Out = T>
__device__ inline TileOperands<T, Out> tile_operands(const LinearParams& params, int64_t member,
                                                     int64_t first_m, int64_t first_n, int rows,
                                                     int columns) {
  TileOperands<T, Out> tile;
  tile.y = tile_destination<Out>(params, member, first_m, first_n, rows, columns);
  tile.x = {static_cast<const T*>(params.x) + member * params.x_strides.member +
                first_m * params.x_strides.row,
            params.x_strides.row, tile.y.num_rows, params.x_is_aligned};
  tile.weight = {static_cast<const T*>(params.weight) + member * params.weight_strides.member +
                     first_n * params.weight_strides.row,
                 params.weight_strides.row, tile.y.num_columns, params.weight_is_aligned};
  return tile;
}

/// Before wait_for_grid(): prefetches of each row of the weight's tile up to `most` bytes, from
/// first_k on, of which k_left exist. By at least `columns` threads. Not from tile_operands(),
/// which reads a member's scale.
template <class T>
__device__ inline void prefetch_weight_rows(const LinearParams& params, int64_t member,
                                            int64_t first_n, int columns, int64_t first_k,
                                            int64_t k_left, int most) {
  const int64_t n = first_n + static_cast<int>(threadIdx.x);
  if (!params.weight_is_aligned || static_cast<int>(threadIdx.x) >= columns || n >= params.n) {
    return;
  }
  const int64_t bytes = min(k_left * static_cast<int64_t>(sizeof(T)), static_cast<int64_t>(most));
  arch::prefetch_bulk(static_cast<const T*>(params.weight) + member * params.weight_strides.member +
                          n * params.weight_strides.row + first_k,
                      static_cast<uint32_t>(max(bytes, int64_t{0})));
}

}  // namespace wide::kernels
