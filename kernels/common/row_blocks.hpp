// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks work on rows of features, for their launchers (rows.cuh) and for who plans.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// Of a row that lanes of a warp have: what each keeps, and what all can. Longer ones have a block.
inline constexpr int64_t kShortRowFloats = 16, kShortRowFeatures = 32 * kShortRowFloats;

/// As few lanes as can keep it, but 4: what they load together is 64 bytes side by side.
constexpr int64_t short_row_lanes(int64_t features) {
  int64_t lanes = 4;
  while (lanes * kShortRowFloats < features) lanes *= 2;
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
