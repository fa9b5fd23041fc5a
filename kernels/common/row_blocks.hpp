// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The number of blocks that work on rows of features, for launchers (rows.cuh) and for plans.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// The longest row that lanes of a warp handle; a longer one takes a block.
inline constexpr int64_t kShortRowFeatures = 1024;

/// Floats that a lane keeps: many in longer rows, where a lane has much to do in any case; fewer in
/// shorter ones, which have too few loads in flight unless more warps are resident.
constexpr int64_t short_row_floats(int64_t features) {
  return features <= 128 ? 16 : 32;
}

/// Lanes of a short row: as few as can keep it, at least 4, which load 64 contiguous bytes
/// together. Longer rows whose elements may be read singly from shared memory take a whole warp:
/// two rows would cause bank conflicts.
constexpr int64_t short_row_lanes(int64_t features) {
  if (features > 256 && features % 8 != 0) return 32;
  int64_t lanes = 4;
  while (lanes * short_row_floats(features) < features) lanes *= 2;
  return lanes;
}

/// Rows of a block, given `all` rows: short ones fill four warps, or one warp where larger blocks
/// would leave multiprocessors idle.
constexpr int64_t rows_of_block(int64_t all, int64_t features) {
  constexpr int64_t kWarps = 4, kFewWarps = 1024;
  if (features > kShortRowFeatures) return 1;
  const int64_t rows_of_warp = 32 / short_row_lanes(features);
  return all > kFewWarps * rows_of_warp ? kWarps * rows_of_warp : rows_of_warp;
}

/// Blocks for `rows` rows of each member; 0 for empty tensors.
constexpr int64_t row_blocks(int64_t rows, int64_t members, int64_t features) {
  if (rows == 0 || members == 0 || features == 0) return 0;
  const int64_t all = rows * members;
  return (all - 1) / rows_of_block(all, features) + 1;
}

}  // namespace wide::kernels
