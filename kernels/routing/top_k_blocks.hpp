// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How top_k's rows are divided over blocks and warps, for launchers and for plans.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wide::kernels {

constexpr int kTopKKept = 8;       ///< scores of a thread that stay in registers
constexpr int kTopKMaxWarps = 32;  ///< of a row, whose block they are if they are more than one
constexpr int kTopKRows = 4;       ///< of a block where each has one warp

constexpr int top_k_warps(int64_t num_members) {
  constexpr int64_t kOfWarp = 32 * kTopKKept;
  const int64_t warps = (num_members + kOfWarp - 1) / kOfWarp;
  return static_cast<int>(std::clamp<int64_t>(warps, 1, kTopKMaxWarps));
}
constexpr int64_t top_k_blocks(int64_t num_members, int64_t rows) {
  const int together = top_k_warps(num_members) == 1 ? kTopKRows : 1;
  return rows / together + (rows % together != 0 ? 1 : 0);
}

}  // namespace wide::kernels
