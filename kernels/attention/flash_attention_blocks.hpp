// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many blocks launches of flash_attention have, for the launchers and for who plans. Of a
// launch's params or of a problem whose kv_heads are said, which have the same fields.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// Queries of a block of simt's, tensor_core's and wgmma's.
inline constexpr int kSimtQueries = 64, kMmaQueries = 128, kWgmmaQueries = 128;
/// Of short: queries of a tile, and tiles of a block at the most.
inline constexpr int kTileQueries = 16, kTilesPerBlock = 16;

/// Of so many members, with so many queries a block.
template <class P>
int64_t attention_query_blocks(const P& p, int64_t members, int64_t queries) {
  if (p.seq == 0) return 0;
  return block_product({(p.seq - 1) / queries + 1, p.heads, p.batch, members});
}

/// Heads of keys, each of which is a unit of work.
template <class P>
int64_t attention_units(const P& p, int64_t members) {
  return block_product({p.kv_heads, p.batch, members});
}

/// Of short, had each unit blocks of its own, as units are numbered, too: of few tiles several
/// share one.
template <class P>
int64_t attention_short_blocks(const P& p, int64_t members) {
  if (p.seq == 0 || p.kv_heads == 0) return 0;
  const int64_t tiles = block_product({p.heads / p.kv_heads, (p.seq - 1) / kTileQueries + 1});
  if (tiles > kMostBlocks) return tiles;
  return block_product({attention_units(p, members), (tiles - 1) / kTilesPerBlock + 1});
}

/// Of decode, with keys in so many parts.
template <class P>
int64_t attention_decode_blocks(const P& p, int64_t members, int64_t parts) {
  return block_product({attention_units(p, members), parts});
}

}  // namespace wide::kernels
