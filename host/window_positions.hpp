// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What windows read of an axis: with a stride longer than the window, not all of it; with padding,
// less than they have taps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace wide::catalog {

/// `outputs` windows of `kernel` positions, `dilation` apart, the first beginning `padding` before
/// position 0 and each `stride` after the one before.
struct Windows {
  int64_t outputs = 0, kernel = 1, stride = 1, padding = 0, dilation = 1;
};

/// How many of `extent` positions are in one window or more.
inline int64_t positions_read(int64_t extent, const Windows& w) {
  std::vector<bool> is_read(static_cast<size_t>(extent));
  for (int64_t i = 0; i < w.outputs; ++i) {
    for (int64_t t = 0; t < w.kernel; ++t) {
      const int64_t at = i * w.stride - w.padding + t * w.dilation;
      if (at >= 0 && at < extent) is_read[static_cast<size_t>(at)] = true;
    }
  }
  return std::count(is_read.begin(), is_read.end(), true);
}

/// Taps of all windows that are positions, not padding.
inline int64_t taps_inside(int64_t extent, const Windows& w) {
  int64_t count = 0;
  for (int64_t i = 0; i < w.outputs; ++i) {
    for (int64_t t = 0; t < w.kernel; ++t) {
      const int64_t at = i * w.stride - w.padding + t * w.dilation;
      count += at >= 0 && at < extent ? 1 : 0;
    }
  }
  return count;
}

}  // namespace wide::catalog
