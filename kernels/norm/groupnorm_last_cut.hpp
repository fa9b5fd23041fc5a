// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How groupnorm's kernels for channels last cut images for blocks. It hangs on a group's size
// alone, neither on members nor on alignment, so that these change no bit of a sum. For launchers
// and for plans: from params or from a problem, which have the same fields.
#pragma once

#include <cstdint>
#include <numeric>

#include "kernels/norm/norm_blocks.hpp"

namespace wide::kernels {

inline constexpr int64_t kLastThreads = 256;    // of a block, at most
inline constexpr int64_t kLastVectors = 4;      // of a thread, in registers
inline constexpr int64_t kLastLanes = 4;        // of a tile, at least: 64 bytes of a position
inline constexpr int64_t kLastTileGroups = 64;  // at most: fewer than 2 * kLastLanes * 8 channels
inline constexpr int64_t kPartialBytes = 16;    // of a group's moments in one chunk

/// A tile: the channels of some groups, at every position of an image. A chunk: what a block has of
/// a tile, kLastVectors vectors a thread, position after position.
struct LastCut {
  int64_t groups = 1;    ///< of a tile
  int64_t lanes = 1;     ///< vectors of a tile at a position; the last may have fewer channels
  int64_t threads = 0;   ///< of a block that have vectors: whole positions where these fit
  int64_t tiles = 0;     ///< of all members
  int64_t chunks = 0;    ///< of a tile
  int64_t blocks = 0;    ///< of all images; more than kMaxGridBlocks where there are too many
  int64_t partials = 0;  ///< groups' moments to be kept between two kernels; 0: one kernel does it
};

/// `vector`: channels in 16 bytes. `members`: of a launch.
template <class P>
LastCut groupnorm_last_cut(const P& p, int64_t members, int64_t vector) {
  LastCut cut;
  if (is_empty_norm(p)) return cut;
  const int64_t channels = p.channels / p.groups, positions = p.height * p.width;
  // Whole sectors, or whole vectors; else one group, of channels that no thread keeps to.
  for (const int64_t unit : {2 * vector, vector}) {
    cut.groups = unit / std::gcd(channels, unit);
    cut.lanes = cut.groups * channels / vector;
    if (cut.lanes <= kLastThreads) break;
    cut.groups = 1;
    cut.lanes = (channels + vector - 1) / vector;
  }
  for (; cut.lanes < kLastLanes; cut.lanes *= 2) cut.groups *= 2;
  const bool is_narrow = cut.lanes <= kLastThreads;
  cut.threads = is_narrow ? kLastThreads / cut.lanes * cut.lanes : kLastThreads;
  const int64_t per_chunk = kLastVectors * cut.threads;
  cut.chunks = is_narrow ? (positions - 1) / (per_chunk / cut.lanes) + 1
                         : (positions * cut.lanes - 1) / per_chunk + 1;
  cut.tiles = (members * p.groups - 1) / cut.groups + 1;
  // Kernels count the channels of all members in 31 bits, as they do blocks.
  const bool is_too_wide = block_product({members, p.channels}) > kMaxGridBlocks;
  cut.blocks = is_too_wide ? kMaxGridBlocks + 1 : block_product({p.batch, cut.tiles, cut.chunks});
  cut.partials = cut.chunks == 1 ? 0 : p.batch * members * p.groups * cut.chunks;
  return cut;
}

}  // namespace wide::kernels
