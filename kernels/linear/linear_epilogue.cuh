// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From sums to outputs: scale, bias, residual, activation, one rounding. Every kernel of this
// folder ends here, so that an output's bits do not depend on which of them stored it.
#pragma once

#include <cstdint>

#include "kernels/common/activation.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/linear/four.cuh"
#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

constexpr int kColumnGroup = 4;  // neighbouring outputs: one vector store

/// Where a tile's results are stored, and what is applied to them first. Pointers are at the tile's
/// first output.
template <class T>
struct Destination {
  T* y;
  const T* bias;       ///< or null
  const float* scale;  ///< one per output, or null
  const T* residual;   ///< or null
  int64_t row_stride, residual_row_stride;
  int num_rows, num_columns;
  float factor;  ///< alpha, and the member's scale
  Activation activation;
  bool residual_is_activated;
  bool y_is_aligned, epilogue_is_aligned;

  __device__ bool has_row(int row) const { return row < num_rows; }
  /// Where the tile's row is among the rows of y and of the residual.
  __device__ int place(int row) const { return row; }
  /// What a row's outputs get last of all.
  template <int kSize>
  __device__ void gate(int, float (&)[kSize]) const {}
};

/// The tile of `member` at (first_m, first_n).
template <class T>
__device__ inline Destination<T> destination_of(const LinearEpilogue& epilogue, T* y,
                                                const RowStrides& y_strides, int64_t member,
                                                int64_t first_m, int64_t first_n, int num_rows,
                                                int num_columns, bool y_is_aligned) {
  const bool has_member_scale = epilogue.scale != nullptr && !epilogue.scale_is_per_output;
  const float* scale =
      epilogue.scale == nullptr ? nullptr : epilogue.scale + member * epilogue.scale_member_stride;
  Destination<T> to;
  to.y = y + member * y_strides.member + first_m * y_strides.row + first_n;
  to.bias = epilogue.bias == nullptr ? nullptr
                                     : static_cast<const T*>(epilogue.bias) +
                                           member * epilogue.bias_member_stride + first_n;
  to.scale = epilogue.scale_is_per_output && scale != nullptr ? scale + first_n : nullptr;
  to.residual = epilogue.residual == nullptr
                    ? nullptr
                    : static_cast<const T*>(epilogue.residual) +
                          member * epilogue.residual_strides.member +
                          first_m * epilogue.residual_strides.row + first_n;
  to.row_stride = y_strides.row, to.residual_row_stride = epilogue.residual_strides.row;
  to.num_rows = num_rows, to.num_columns = num_columns;
  to.factor = has_member_scale ? epilogue.alpha * *scale : epilogue.alpha;
  to.activation = epilogue.activation;
  to.residual_is_activated = epilogue.residual_is_activated;
  to.y_is_aligned = y_is_aligned, to.epilogue_is_aligned = epilogue.is_aligned;
  return to;
}

/// Loads `count` neighbours, at most kSize of them, which is two or four.
template <class T, int kSize>
__device__ inline void load_run(const T* from, int count, bool is_aligned, float (&values)[kSize]) {
  if (is_aligned && count >= kSize) {
    load_group(from, values);
  } else {
    load_some(from, count, values);
  }
}

template <class T, int kSize>
__device__ inline void add_run(const T* from, int count, bool is_aligned, float (&values)[kSize]) {
  float more[kSize];
  load_run(from, count, is_aligned, more);
#pragma unroll
  for (int e = 0; e < kSize; ++e) values[e] += more[e];
}

/// Turns neighbouring sums of a row of the tile, `count` of which exist, into fp32 outputs. To,
/// here and below: Destination<T>, or one whose rows are elsewhere.
template <class To, int kSize>
__device__ inline void finish_run(const To& to, int row, int column, int count,
                                  float (&values)[kSize]) {
  const bool is_aligned = to.epilogue_is_aligned;
  if (to.scale != nullptr) {
    float factors[kSize];
    load_run(to.scale + column, count, is_aligned, factors);
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] *= to.factor * factors[e];
  } else {
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] *= to.factor;
  }
  if (to.bias != nullptr) add_run(to.bias + column, count, is_aligned, values);
  const auto* residual = to.residual == nullptr
                             ? nullptr
                             : to.residual + to.place(row) * to.residual_row_stride + column;
  if (residual != nullptr && to.residual_is_activated) {
    add_run(residual, count, is_aligned, values);
  }
  with_activation(to.activation, [&]<Activation fixed>() {
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = activate<fixed>(values[e]);
  });
  if (residual != nullptr && !to.residual_is_activated) {
    add_run(residual, count, is_aligned, values);
  }
  to.gate(row, values);
}

/// Finishes and stores up to four neighbouring sums of a row of the tile.
template <class To>
__device__ inline void store_run(const To& to, int row, int column, int count, float (&values)[4]) {
  finish_run(to, row, column, count, values);
  auto* y = to.y + to.place(row) * to.row_stride + column;
  if (count == kColumnGroup && to.y_is_aligned) {
    store_four(y, values);
  } else {
    store_some(y, count, values);
  }
}

/// Stores a tile of sums, where place(row, column) is in shared memory, four neighbours contiguous,
/// by threads 0 to kThreads - 1: neighbouring lanes store neighbouring outputs, four each where y
/// is aligned, else one. `kPlanes` tiles of sums, kPlaneFloats apart, are added up in order. The
/// loops are not unrolled: 64 copies of erfc spill.
template <int kRows, int kColumns, int kThreads, int kPlanes = 1, int kPlaneFloats = 0, class To,
          class Place>
__device__ inline void store_placed_sums(const To& to, int thread, const Place& place) {
  constexpr int groups = kColumns / kColumnGroup;
  if (to.y_is_aligned) {
#pragma unroll 1
    for (int index = thread; index < kRows * groups; index += kThreads) {
      const int row = index / groups, column = index % groups * kColumnGroup;
      if (!to.has_row(row) || column >= to.num_columns) continue;
      float values[kColumnGroup];
      load_group(place(row, column), values);
#pragma unroll
      for (int plane = 1; plane < kPlanes; ++plane) {
        add_run(place(row, column) + plane * kPlaneFloats, kColumnGroup, true, values);
      }
      store_run(to, row, column, min(to.num_columns - column, kColumnGroup), values);
    }
  } else {
#pragma unroll 1
    for (int index = thread; index < kRows * kColumns; index += kThreads) {
      const int row = index / kColumns, column = index % kColumns;
      if (!to.has_row(row) || column >= to.num_columns) continue;
      float values[kColumnGroup] = {*place(row, column)};
#pragma unroll
      for (int plane = 1; plane < kPlanes; ++plane) {
        values[0] += place(row, column)[plane * kPlaneFloats];
      }
      store_run(to, row, column, 1, values);
    }
  }
}

/// The same for row-major sums with `kPitch` floats a row and contiguous planes.
template <int kRows, int kColumns, int kPitch, int kPlanes, int kThreads, class To>
__device__ inline void store_sums(const To& to, const float* sums, int thread) {
  store_placed_sums<kRows, kColumns, kThreads, kPlanes, kRows * kPitch>(
      to, thread, [&](int row, int column) { return sums + row * kPitch + column; });
}

}  // namespace wide::kernels
