// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks work on rows of features, for their launchers (rows.cuh) and for who plans.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// So long rows share a block.
inline constexpr int64_t kShortRowFeatures = 256, kShortRowsOfBlock = 4;

/// Of each of so many members' rows; 0 of empty tensors.
constexpr int64_t row_blocks(int64_t rows, int64_t members, int64_t features) {
  if (rows == 0 || members == 0 || features == 0) return 0;
  const int64_t all = rows * members;
  return features <= kShortRowFeatures ? (all - 1) / kShortRowsOfBlock + 1 : all;
}

}  // namespace wide::kernels
