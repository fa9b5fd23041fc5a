// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two of linear's tiles in one kernel, for members with few rows and with many. All of a block
// takes the same one; blocks have threads and shared memory for either.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wide::kernels {

template <auto short_tile, auto tall_tile>
struct TilePair {
  static constexpr auto kShort = short_tile, kTall = tall_tile;
  static constexpr int kThreads = policy_of(kTall).threads();
  static constexpr int kSharedBytes =
      std::max(policy_of(kShort).shared_bytes(), policy_of(kTall).shared_bytes());
  static_assert(policy_of(kShort).threads() == kThreads);

  static constexpr bool are_of(int64_t short_rows, int64_t tall_rows, int64_t outputs) {
    return tile_m(kShort) == short_rows && tile_m(kTall) == tall_rows &&
           tile_n(kShort) == outputs && tile_n(kTall) == outputs;
  }
};

}  // namespace wide::kernels
