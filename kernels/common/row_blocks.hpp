// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks work on rows of features, for their launchers (rows.cuh) and for who plans.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// Of rows that lanes of a warp have; longer ones have a block.
inline constexpr int64_t kShortRowFeatures = 1024;

/// That a lane keeps: of longer rows many, as a lane has much to do whatever it keeps; of shorter
/// ones fewer, since those have too few loads under way but for more resident warps.
constexpr int64_t short_row_floats(int64_t features) {
  return features <= 128 ? 16 : 32;
}

/// As few lanes as can keep it, but 4: what they load together is 64 bytes side by side. Longer
/// rows that may be taken one by one from shared memory have a warp: two rows would meet in its
/// banks.
constexpr int64_t short_row_lanes(int64_t features) {
  if (features > 256 && features % 8 != 0) return 32;
  int64_t lanes = 4;
  while (lanes * short_row_floats(features) < features) lanes *= 2;
  return lanes;
}

/// Of a block that has some of `all` rows: short ones of four warps, or of one where larger blocks
/// would leave multiprocessors idle.
constexpr int64_t rows_of_block(int64_t all, int64_t features) {
  constexpr int64_t kWarps = 4, kFewWarps = 1024;
  if (features > kShortRowFeatures) return 1;
  const int64_t rows_of_warp = 32 / short_row_lanes(features);
  return all > kFewWarps * rows_of_warp ? kWarps * rows_of_warp : rows_of_warp;
}

/// Of each of so many members' rows; 0 of empty tensors.
constexpr int64_t row_blocks(int64_t rows, int64_t members, int64_t features) {
  if (rows == 0 || members == 0 || features == 0) return 0;
  const int64_t all = rows * members;
  return (all - 1) / rows_of_block(all, features) + 1;
}

}  // namespace wide::kernels
