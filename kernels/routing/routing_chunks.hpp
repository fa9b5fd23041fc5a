// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How routing's rows are divided over blocks and their warps, for launchers and for plans.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wide::kernels {

constexpr int kRoutingThreads = 1024, kRoutingWarps = kRoutingThreads / 32;
/// Of a launch: few enough that a warp adds a column's counts of all chunks up in a few loads, and
/// that all blocks run at once on the larger devices.
constexpr int kMaxRoutingChunks = 128;
/// Shared memory of a block, beyond its counters.
constexpr int kRoutingStaticBytes = 4 * kRoutingWarps;

/// One chunk is a block's. Columns are the members and, last, nobody.
struct RoutingChunks {
  int64_t rows = 0;  ///< of each but the last, a multiple of kRoutingThreads
  int count = 0;     ///< at least one: that there are no rows is written, too
  int warps = 0;     ///< of a block, that count and place rows; a power of two
  int64_t columns = 0;

  int64_t count_bytes() const { return count > 1 ? count * columns * 4 : 0; }
  /// Counters of each warp, sums over chunks and over the chunks before.
  int64_t shared_bytes() const { return (warps + 2) * columns * 4; }
};

inline RoutingChunks routing_chunks(int64_t num_members, int64_t num_rows) {
  constexpr int64_t kCounters = 24 * 1024;  // 96 KiB, which a block of any device of 8.x has
  RoutingChunks chunks;
  chunks.columns = num_members + 1;
  chunks.warps = kRoutingWarps;
  while (chunks.warps > 1 && (chunks.warps + 2) * chunks.columns > kCounters) chunks.warps /= 2;
  // Every block reads the counts of all chunks: of larger chunks these are fewer, but each of a
  // block's warps, which get through a piece 32 rows at a time, has more rows.
  const int64_t worth_counting = chunks.columns * std::max(1, chunks.warps / 4);
  const int64_t least =
      std::max((num_rows + kMaxRoutingChunks - 1) / kMaxRoutingChunks, worth_counting);
  chunks.rows = (least + kRoutingThreads - 1) / kRoutingThreads * kRoutingThreads;
  chunks.count = static_cast<int>(std::max<int64_t>(1, (num_rows + chunks.rows - 1) / chunks.rows));
  return chunks;
}

}  // namespace wide::kernels
