// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's tile, channels first: which outputs it has, their inputs in shared memory, and how its
// threads number the outputs.
#pragma once

#include "kernels/common/staged_runs.cuh"
#include "kernels/pooling/pooling_window.cuh"

namespace wide::kernels {

constexpr int kSectorBytes = 32;

/// The outputs of a block, and the inputs that they need.
struct Tile {
  int64_t first_image;
  int images;
  int row, rows, column, columns;
  int in_row, in_rows, in_column, in_columns;
};

template <PoolingMode kMode>
__device__ Tile tile_of(const PoolingParams& p, const Cut& cut) {
  int strip, band;
  const int bands = cut.by_strips.divide(static_cast<int>(blockIdx.x), strip);
  Tile tile;
  tile.first_image = int64_t{cut.by_bands.divide(bands, band)} * cut.images;
  tile.images = static_cast<int>(min(int64_t{cut.images}, cut.num_images - tile.first_image));
  tile.row = band * cut.rows;
  tile.rows = min(cut.rows, p.rows.out - tile.row);
  tile.column = strip * cut.columns;
  tile.columns = min(cut.columns, p.columns.out - tile.column);
  const int2 down = span_of<kMode>(p.rows, tile.row, tile.rows);
  const int2 across = span_of<kMode>(p.columns, tile.column, tile.columns);
  // Runs of several rows have whole rows; of several images, all rows of each.
  const bool is_run_of_rows = cut.run != Run::row, is_run_of_images = cut.run == Run::tile;
  tile.in_row = is_run_of_images ? 0 : down.x;
  tile.in_rows = is_run_of_images ? p.rows.in : down.y;
  tile.in_column = is_run_of_rows ? 0 : across.x;
  tile.in_columns = is_run_of_rows ? p.columns.in : across.y;
  return tile;
}

/// A tile's inputs in shared memory.
template <class T>
class Inputs {
 public:
  /// `starts`: room for cut.runs numbers.
  __device__ Inputs(const PoolingParams& p, const Cut& cut, const Tile& tile, T* kept, int* starts)
      : p_(p), cut_(cut), tile_(tile), kept_(kept), starts_(starts) {}

  /// Loads what is one run, and returns where it begins; the block may read it after a barrier. The
  /// same as load(), except that an address is found once instead of with every 16 bytes.
  __device__ const T* load_one() const {
    constexpr int kSize = Vec16<T>::kSize;
    const T* const from = address_of(0);
    const int length =
        tile_.in_rows * tile_.in_columns * (cut_.run == Run::tile ? tile_.images : 1);
    const int thread = static_cast<int>(threadIdx.x), phase = phase_of(from);
    for (int i = thread * kSize - phase; i < length; i += kPoolingThreads * kSize) {
      if (i < 0) continue;
      arch::cp_async_16(kept_ + phase + i, from + i,
                        min(length - i, kSize) * static_cast<int>(sizeof(T)));
    }
    arch::cp_async_commit();
    const int element = thread - phase;
    if (phase > 0 && thread < kSize && element >= 0 && element < length) {
      kept_[thread] = from[element];
    }
    arch::cp_async_wait<0>();
    return kept_ + phase;
  }
  /// Loads them; the block may read them after a barrier.
  __device__ void load() const {
    const int runs = cut_.run == Run::tile    ? 1
                     : cut_.run == Run::image ? tile_.images
                                              : tile_.images * cut_.in_rows;
    const int length = cut_.run == Run::row ? tile_.in_columns
                                            : tile_.in_rows * tile_.in_columns *
                                                  (cut_.run == Run::tile ? tile_.images : 1);
    const auto from = [this](int run) { return address_of(run); };
    const int thread = static_cast<int>(threadIdx.x);
    bring_runs(kept_, {cut_.pitch, cut_.by_chunks}, runs, length, {thread, kPoolingThreads}, from);
    for (int run = thread; run < runs; run += kPoolingThreads) {
      starts_[run] = run * cut_.pitch + phase_of(address_of(run));
    }
    arch::cp_async_wait<0>();
  }

  /// Element (row, column) of the tile's `image`, with x's coordinates.
  __device__ const T* at(int image, int row, int column) const {
    const int in_row = row - tile_.in_row, in_column = column - tile_.in_column;
    if (cut_.run == Run::row) {
      return kept_ + starts_[image * cut_.in_rows + in_row] + in_column;
    }
    const bool is_one = cut_.run == Run::tile;
    return kept_ + starts_[is_one ? 0 : image] +
           ((is_one ? image * tile_.in_rows : 0) + in_row) * tile_.in_columns + in_column;
  }

 private:
  /// Null for a row that no output needs.
  __device__ const T* address_of(int run) const {
    int row = 0, image = run;
    if (cut_.run == Run::row) image = cut_.by_in_rows.divide(run, row);
    if (row >= tile_.in_rows) return nullptr;
    return static_cast<const T*>(p_.x) +
           image_offset(p_, cut_, p_.x_strides, tile_.first_image + image) +
           (tile_.in_row + row) * p_.x_strides.row + tile_.in_column;
  }

  const PoolingParams& p_;
  const Cut& cut_;
  const Tile& tile_;
  T* kept_;
  int* starts_;
};

/// One of a tile's outputs, or groups of neighbours (pooling_vectors.cuh), which are numbered in
/// y's order.
struct Output {
  int image, row, column;

  __device__ Output(const Cut& cut, int number) {
    image = cut.by_rows.divide(cut.by_across.divide(number, column), row);
  }
  /// Advances by kPoolingThreads numbers.
  __device__ void advance(const Cut& cut) {
    image += cut.step_images;
    row += cut.step_rows;
    column += cut.step_columns;
    if (column >= cut.across) {
      column -= cut.across;
      ++row;
    }
    if (row >= cut.rows) {
      row -= cut.rows;
      ++image;
    }
  }
  __device__ bool exists(const Tile& tile) const {
    return image < tile.images && row < tile.rows && column < tile.columns;
  }
  template <class T>
  __device__ T* y(const PoolingParams& p, const Cut& cut, const Tile& tile) const {
    return static_cast<T*>(p.y) + image_offset(p, cut, p.y_strides, tile.first_image + image) +
           (tile.row + row) * p.y_strides.row + tile.column + column;
  }
};

/// This thread's first output, or group of kOutputs, such that neighbouring threads take neighbours
/// in a sector.
template <int kOutputs = 1, class T>
__device__ inline int first_number(const T* first_output) {
  const auto skew =
      reinterpret_cast<uintptr_t>(first_output) % kSectorBytes / (kOutputs * sizeof(T));
  const int number = static_cast<int>(threadIdx.x) - static_cast<int>(skew);
  return number < 0 ? number + kPoolingThreads : number;
}

}  // namespace wide::kernels
