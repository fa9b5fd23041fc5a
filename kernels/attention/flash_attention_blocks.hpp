// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The number of blocks of flash_attention's launches, for launchers and for plans. From a launch's
// params or from a problem with kv_heads set, which have the same fields.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// Queries per block of tensor_core and wgmma, and the fewest of simt.
inline constexpr int kMmaQueries = 128, kWgmmaQueries = 128, kSimtLeastQueries = 56;
/// For short: queries per tile, and the most tiles per block.
inline constexpr int kTileQueries = 16, kTilesPerBlock = 16;

/// For `members` members, with `queries` queries a block.
template <class P>
int64_t attention_query_blocks(const P& p, int64_t members, int64_t queries) {
  if (p.seq == 0) return 0;
  return block_product({(p.seq - 1) / queries + 1, p.heads, p.batch, members});
}

/// Key heads, each of which is a unit of work.
template <class P>
int64_t attention_units(const P& p, int64_t members) {
  return block_product({p.kv_heads, p.batch, members});
}

/// For short if each unit had its own blocks, as units are numbered, too: units of few tiles share
/// a block.
template <class P>
int64_t attention_short_blocks(const P& p, int64_t members) {
  if (p.seq == 0 || p.kv_heads == 0) return 0;
  const int64_t tiles = block_product({p.heads / p.kv_heads, (p.seq - 1) / kTileQueries + 1});
  if (tiles > kMaxGridBlocks) return tiles;
  return block_product({attention_units(p, members), (tiles - 1) / kTilesPerBlock + 1});
}

/// For decode, with keys in `parts` parts.
template <class P>
int64_t attention_decode_blocks(const P& p, int64_t members, int64_t parts) {
  return block_product({attention_units(p, members), parts});
}

}  // namespace wide::kernels
