// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Windows of two or three columns without dilation, a group of neighbours a thread: their elements
// in one row are a vector, which is one load, and at most one before and one behind it. One by one
// a warp's loads would be apart by the stride, and so two of fp32 in each bank; and all that a
// thread computes of where it is would be for one output. What is beside a vector is still read
// singly, apart by a vector, and so several in each bank: no more passes than without vectors.
//
// Sums are taken as those of windows alone are, row by row, so that a mean's bits do not depend on
// what the alignment allows. Maxima are taken down the columns first, of 16 bits two at once: there
// no order makes a difference. Where rows of outputs are two rows of inputs apart, threads of odd
// ones take their second row before their first, which leaves the sum of both as it is: the same
// rows of all would often be in the same banks.
#pragma once

#include "kernels/common/numeric.cuh"
#include "kernels/pooling/pooling_window.cuh"
#include "kernels/pooling/short_vector.cuh"

namespace wide::kernels {

/// How a group's windows lie: kStride apart, on kVector elements of a row that begin at a multiple
/// of kVector, and on some before and behind them.
template <int kKernel_, int kStride_, int kPadding, int kVector_>
struct WindowGroup {
  static constexpr int kKernel = kKernel_, kStride = kStride_, kVector = kVector_;
  static constexpr int kOutputs = kVector / kStride;
  static constexpr int kBefore = kPadding, kBehind = kKernel - kStride - kPadding;
  static constexpr int kBeside = kBefore + kBehind, kElements = kVector + kBeside;
  static_assert(kBefore <= 1 && kBehind >= 0 && kBehind <= 1);
};

/// Where a group is in the tile.
template <class T>
struct GroupPlace {
  const T* image;   ///< row 0 of its image
  int row;          ///< of the image, the windows' first
  int column;       ///< of the vector
  bool is_swapped;  ///< its second row is taken before its first

  /// The row that is taken as number `r`.
  __device__ int row_at(int r) const { return row + (is_swapped && r < 2 ? 1 - r : r); }
};

__device__ inline __half2 pair_of(__half a, __half b) {
  return __halves2half2(a, b);
}
__device__ inline __nv_bfloat162 pair_of(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __halves2bfloat162(a, b);
}
/// values[i] = the larger of it and others[i], or NaN
template <int kCount>
__device__ inline void take_larger(float (&values)[kCount], const float (&others)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = arch::max_keeping_nan(values[i], others[i]);
}
template <class T, int kCount>
__device__ inline void take_larger(T (&values)[kCount], const T (&others)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    const int j = min(i + 1, kCount - 1);
    const auto larger = __hmax2_nan(pair_of(values[i], values[j]), pair_of(others[i], others[j]));
    values[i] = larger.x;
    values[j] = larger.y;
  }
}

/// The maxima of a group. What is outside of the image is replaced by the nearest inside, which is
/// in the same windows.
template <class Group, class T>
__device__ inline Vector<T, Group::kOutputs> largest_of(const PoolingParams& p,
                                                        const GroupPlace<T>& place) {
  constexpr int kVector = Group::kVector, kBefore = Group::kBefore, kBehind = Group::kBehind;
  constexpr int kPlaces = Group::kBeside > 0 ? Group::kBeside : 1;
  const int columns = p.columns.in;
  // What lies beside the vector, apart from it, so that pairs of the vector stay pairs.
  T middle[kVector], beside[kPlaces]{};
#pragma unroll
  for (int r = 0; r < Group::kKernel; ++r) {
    if (r > 0 && p.rows.kernel == 1) break;
    const int row = min(max(place.row_at(r), 0), p.rows.in - 1);
    const T* const from = place.image + row * columns + place.column;
    const auto vector = Vector<T, kVector>::load(from);
    T others[kPlaces]{};
    if (kBefore > 0) others[0] = from[place.column > 0 ? -1 : 0];
    if (kBehind > 0) others[kBefore] = from[min(kVector, columns - 1 - place.column)];
    if (r == 0) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) middle[i] = vector.v[i];
#pragma unroll
      for (int i = 0; i < Group::kBeside; ++i) beside[i] = others[i];
    } else {
      take_larger(middle, vector.v);
      if (Group::kBeside > 0) take_larger(beside, others);
    }
  }
  T elements[Group::kElements];
#pragma unroll
  for (int i = 0; i < Group::kElements; ++i) {
    const int at = i - kBefore;
    elements[i] = at < 0 ? beside[0] : at < kVector ? middle[at] : beside[i - kVector];
  }
  Vector<T, Group::kOutputs> largest;
#pragma unroll
  for (int i = 0; i < Group::kOutputs; ++i) largest.v[i] = elements[i * Group::kStride];
#pragma unroll
  for (int c = 1; c < Group::kKernel; ++c) {
    T others[Group::kOutputs];
#pragma unroll
    for (int i = 0; i < Group::kOutputs; ++i) others[i] = elements[i * Group::kStride + c];
    take_larger(largest.v, others);
  }
  return largest;
}

/// The sums of a group, in fp32.
template <class Group, class T>
__device__ inline Vector<float, Group::kOutputs> sums_of(const PoolingParams& p,
                                                         const GroupPlace<T>& place) {
  constexpr int kVector = Group::kVector, kBefore = Group::kBefore, kBehind = Group::kBehind;
  constexpr int kAtOnce = Group::kKernel == 2 ? 2 : 1;  // rows: three would take more registers
  Vector<float, Group::kOutputs> sums{};
#pragma unroll kAtOnce
  for (int r = 0; r < Group::kKernel; ++r) {
    if (r > 0 && p.rows.kernel == 1) break;
    const int row = place.row_at(r);
    if (static_cast<unsigned>(row) >= static_cast<unsigned>(p.rows.in)) continue;
    const T* const from = place.image + row * p.columns.in + place.column;
    const auto vector = Vector<T, kVector>::load(from);
    float elements[Group::kElements];
    if (kBefore > 0) elements[0] = place.column > 0 ? to_float(from[-1]) : 0.0f;
#pragma unroll
    for (int i = 0; i < kVector; ++i) elements[kBefore + i] = to_float(vector.v[i]);
    if (kBehind > 0) {
      const bool exists = place.column + kVector < p.columns.in;
      elements[kBefore + kVector] = exists ? to_float(from[kVector]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < Group::kOutputs; ++i) {
      float of_row = elements[i * Group::kStride];
#pragma unroll
      for (int c = 1; c < Group::kKernel; ++c) of_row += elements[i * Group::kStride + c];
      sums.v[i] += of_row;
    }
  }
  return sums;
}

}  // namespace wide::kernels
