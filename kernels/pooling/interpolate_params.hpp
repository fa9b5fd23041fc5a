// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of interpolate's kernel, apart from its launcher, and where an output lies: planning
// and the CPU device need no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "wide/channels.hpp"

namespace wide::kernels {

/// Output i lies at (i * step + start) / parts, limited to positions of x: whole numbers, so that
/// no position is rounded.
struct LinearAxis {
  int in = 1, out = 1;
  int64_t step = 1, start = 0, parts = 1;
  Divisor by_parts{};
};

/// An output is (1 - weight) x[first] + weight x[first + 1]; of weight 0 there may be no such
/// neighbour.
struct alignas(8) LinearTap {
  int first;
  float weight;  ///< a multiple of 2^-24 below 1: 1 - weight is exact, too
};

/// divide(n, left): n / axis.parts, rounded down, with the remainder in `left`.
template <class Divide>
constexpr LinearTap linear_tap(const LinearAxis& axis, int output, const Divide& divide) {
  const int64_t place = output * axis.step + axis.start;
  if (place <= 0) return {0, 0.0f};
  int64_t left = 0, rest = 0;
  const int64_t first = divide(place, left);
  if (first >= axis.in - 1) return {axis.in - 1, 0.0f};
  const auto weight = static_cast<float>(divide(left << 24, rest));
  return {static_cast<int>(first), weight * 0x1p-24f};
}

/// x [batch, members, channels, rows, columns], y likewise; strides in elements.
struct InterpolateParams {
  const void* x = nullptr;
  void* y = nullptr;
  int64_t num_members = 0, channels = 0, batch = 0;
  LinearAxis rows, columns;
  ChannelStrides x_strides{}, y_strides{};
};

}  // namespace wide::kernels
