// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How a block's threads number the outputs of its tile, channels first.
#pragma once

#include "kernels/pooling/pooling_window.cuh"
#include "kernels/pooling/staged_tile.cuh"

namespace wide::kernels {

constexpr int kSectorBytes = 32;

template <PoolingMode kMode>
__device__ Tile tile_of(const PoolingParams& p, const Cut& cut) {
  return tile_of(p, cut, [](const PoolingAxis& axis, int output, int count) {
    return span_of<kMode>(axis, output, count);
  });
}

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
    return static_cast<T*>(p.y) + image_offset(cut, p.y_strides, tile.first_image + image) +
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
