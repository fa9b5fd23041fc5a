// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a window, and their reduction.
#pragma once

#include "kernels/arch/maximum.cuh"
#include "kernels/pooling/pooling_cut.hpp"
#include "wide/pooling_mode.hpp"

namespace wide::kernels {

/// A window's part of one axis: positions first + t * dilation, t < count.
struct Taps {
  int first, count;
  int weight;  ///< the divisor of a mean
};

template <PoolingMode kMode>
__device__ inline Taps taps_of(const PoolingAxis& axis, int output, bool counts_padding) {
  if constexpr (kMode == PoolingMode::adaptive_average) {
    int64_t left;
    const int64_t from = int64_t{output} * axis.in;
    const auto first = static_cast<int>(axis.by_out.divide(from, left));
    const auto end = static_cast<int>(axis.by_out.divide(from + axis.in + axis.out - 1, left));
    return {first, end - first, end - first};
  }
  const int start = output * axis.stride - axis.padding;
  if (axis.dilation == 1) {
    const int first = max(start, 0), count = min(start + axis.kernel, axis.in) - first;
    const int padded = min(start + axis.kernel, axis.in + axis.padding) - start;
    return {first, count, counts_padding ? padded : count};
  }
  const int skipped = start < 0 ? (axis.dilation - 1 - start) / axis.dilation : 0;
  const int end = min(axis.kernel, (axis.in - start + axis.dilation - 1) / axis.dilation);
  return {start + skipped * axis.dilation, end - skipped, 1};
}

/// For windows [output, output + count): the first position and the number of positions.
template <PoolingMode kMode>
__device__ inline int2 span_of(const PoolingAxis& axis, int output, int count) {
  if constexpr (kMode == PoolingMode::adaptive_average) {
    const int first = taps_of<kMode>(axis, output, false).first;
    const Taps last = taps_of<kMode>(axis, output + count - 1, false);
    return {first, last.first + last.count - first};
  }
  const int start = output * axis.stride - axis.padding;
  const int end = start + (count - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  const int first = max(start, 0);
  return {first, min(end, axis.in) - first};
}

template <PoolingMode kMode>
__device__ inline float nothing() {
  return kMode == PoolingMode::max ? -INFINITY : 0.0f;
}
template <PoolingMode kMode>
__device__ inline float combined(float a, float b) {
  return kMode == PoolingMode::max ? arch::max_keeping_nan(a, b) : a + b;
}
/// Reduces over a power of two of neighbouring lanes, in all of them. The whole warp takes part.
template <PoolingMode kMode>
__device__ inline float combined_lanes(float value, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combined<kMode>(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

}  // namespace wide::kernels
