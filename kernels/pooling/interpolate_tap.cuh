// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where interpolate's outputs lie between positions, and what they are there: so rounded in every
// layout, which makes their bits the same.
#pragma once

#include "kernels/pooling/interpolate_params.hpp"

namespace wide::kernels {

__device__ inline LinearTap tap_of(const LinearAxis& axis, int output) {
  return linear_tap(axis, output,
                    [&](int64_t n, int64_t& left) { return axis.by_parts.divide(n, left); });
}

/// For outputs [output, output + count): the first position and the number of positions.
__device__ inline int2 span_of(const LinearAxis& axis, int output, int count) {
  const int first = tap_of(axis, output).first;
  const LinearTap last = tap_of(axis, output + count - 1);
  return {first, last.first + (last.weight > 0.0f ? 2 : 1) - first};
}

/// (1 - weight) a + weight b, so rounded that equal ones give their value.
__device__ inline float between(float a, float b, float weight) {
  return fmaf(weight, b, (1.0f - weight) * a);
}

/// Rows of outputs [first, end), which lie down(row) between rows of x: take(values, row) gives
/// kCount elements of one of these, already between columns, write(values) gets the outputs, row by
/// row. Keeps the two rows that outputs lie between, which the next often share.
template <int kCount, class Down, class Take, class Write>
__device__ void go_down(int first, int end, const Down& down, const Take& take,
                        const Write& write) {
  float above[kCount], below[kCount];
  int above_row = -1, below_row = -1;  // of x
#pragma unroll 1
  for (int row = first; row < end; ++row) {
    const LinearTap tap = down(row);
    if (tap.first != above_row) {
      if (tap.first == below_row) {
#pragma unroll
        for (int e = 0; e < kCount; ++e) above[e] = below[e];
      } else {
        take(above, tap.first);
      }
      above_row = tap.first;
    }
    if (tap.weight > 0.0f && tap.first + 1 != below_row) {
      below_row = tap.first + 1;
      take(below, below_row);
    }
    if (tap.weight == 0.0f) {
      write(above);
    } else {
      float values[kCount];
#pragma unroll
      for (int e = 0; e < kCount; ++e) values[e] = between(above[e], below[e], tap.weight);
      write(values);
    }
  }
}

}  // namespace wide::kernels
