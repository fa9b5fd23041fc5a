// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How far windows of convolutions and pools move along an axis, for unchecked sizes.
#pragma once

#include <cstdint>

namespace wide {

/// input + 2 padding - dilation (kernel - 1) - 1. Below 0 where the window is larger than the
/// padded input, where there is no such window (a kernel, stride or dilation below 1, a negative
/// input or padding), and where the padded input is beyond 64 bits.
constexpr int64_t window_room(int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                              int64_t dilation) {
  if (input < 0 || kernel < 1 || stride < 1 || padding < 0 || dilation < 1) return -1;
  int64_t padded = 0, reach = 0;
  if (__builtin_add_overflow(input, padding, &padded) ||
      __builtin_add_overflow(padded, padding, &padded) ||
      __builtin_mul_overflow(dilation, kernel - 1, &reach)) {
    return -1;
  }
  return reach >= padded ? -1 : padded - reach - 1;
}

}  // namespace wide
