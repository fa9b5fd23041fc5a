// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention of few keys on warp-level matrix instructions (mma.sync m16n8k16), fp16 and bf16, sums
// in fp32: a head's keys and values are entirely in shared memory, and all scores of a query in
// registers. Softmax is then one pass with a known maximum: nothing is rescaled.
//
// Plan: a unit is everything that reads one key head: 16-query tiles of all heads that share it,
// one after another. A block has four warps; it takes one unit's keys and up to 16 of its tiles,
// every fourth one per warp, or as many small units as keep its warps busy. The grid is
// one-dimensional over units. Keys, then values are loaded by cp.async; scores are computed while
// values are in flight. y is stored via the shared memory of a warp's queries.
//
// Unseen keys cost nothing: loops over keys end after the last key that a tile sees, in steps of
// 16. Keys and values are read once per 256 queries that share them.
#pragma once

#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_blocks.hpp"
#include "kernels/attention/flash_attention_fragments.cuh"
#include "kernels/common/launch.hpp"

namespace wide::kernels {

/// Padded heads by keys. A head's keys and values take 64 KiB at most.
enum class ShortTile : uint8_t { d32k128, d32k256, d64k128, d64k256, d128k128, d256k64 };

constexpr AttentionMmaPolicy short_policy_of(ShortTile tile) {
  switch (tile) {
    case ShortTile::d32k128:
      return {32, 128, 16, 1, 4};
    case ShortTile::d32k256:
      return {32, 256, 16, 1, 2};
    case ShortTile::d64k128:
      return {64, 128, 16, 1, 3};
    case ShortTile::d64k256:
      return {64, 256, 16, 1, 2};
    case ShortTile::d128k128:
      return {128, 128, 16, 1, 2};
    case ShortTile::d256k64:
      return {256, 64, 16, 1, 2};
  }
  return {};
}

constexpr int kShortWarps = 4;
constexpr int kShortThreads = 32 * kShortWarps;
/// Rows that are loaded at a time: every thread has a piece of the narrowest head's.
constexpr int kLoadRows = 32;

/// How units are divided over blocks.
struct ShortGrid {
  uint32_t num_units, units_per_block, blocks_per_unit;
  int tiles_per_head, tiles_per_unit;
  int keys;  ///< capacity for a unit's keys: a multiple of kLoadRows
};

/// Where a unit's keys or values begin in shared memory, after the warps' queries.
template <AttentionMmaPolicy policy>
__device__ inline char* unit_keys(char* shared, const ShortGrid& grid, int unit, bool is_values) {
  return shared + (kShortWarps * kTileQueries + (2 * unit + (is_values ? 1 : 0)) * grid.keys) *
                      policy.row_bytes();
}

/// The unit's member, batch row and key head, and its key length; no queries yet.
__device__ inline QueryBlock locate_unit(const FlashAttentionParams& p, uint32_t unit) {
  QueryBlock block{};
  const auto kv_heads = static_cast<uint32_t>(p.kv_heads), batch = static_cast<uint32_t>(p.batch);
  block.kv_head = unit % kv_heads;
  block.batch_row = unit / kv_heads % batch;
  block.member = unit / kv_heads / batch;
  find_keys(p, block);
  return block;
}

/// Starts loading a unit's keys or values, as far as any query sees them.
template <class T, AttentionMmaPolicy policy>
__device__ inline void load_unit(const FlashAttentionParams& p, const QueryBlock& unit,
                                 const void* operand, const RowStrides& strides, bool is_aligned,
                                 char* tile) {
  const T* base = static_cast<const T*>(operand) + key_element(p, unit, strides);
  const int end = visible_keys(p, unit, 0, p.seq - 1).last;
  for (int first = 0; first < end; first += kLoadRows) {
    const Source<T> source{base + first * strides.row, strides.row, unit.key_length - first,
                           is_aligned};
    load_rows<T, kLoadRows, policy.chunks(), kShortThreads, 1>(
        tile + first * policy.row_bytes(), source, 0, p.head_dim, HeadPlace<policy.chunks()>{});
  }
}

/// Loads a warp's own tile of queries. Like load_rows(), which takes all of a block's threads.
template <class T, AttentionMmaPolicy policy>
__device__ inline void load_tile_queries(const FlashAttentionParams& p, const QueryBlock& block,
                                         char* tile) {
  constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  const T* q = static_cast<const T*>(p.q) + query_element(p, block, p.q_strides, block.first_query);
  for (int index = lane_index(); index < kTileQueries * policy.chunks(); index += 32) {
    const int row = index / policy.chunks(), chunk = index % policy.chunks();
    const int left = row < block.num_queries ? min(p.head_dim - chunk * kVector, kVector) : 0;
    const T* from = left > 0 ? q + row * p.q_strides.row + chunk * kVector : q;
    char* to = tile + head_offset<policy.chunks()>(row, chunk);
    if (p.q_is_aligned) {
      arch::cp_async_16(to, from, max(left, 0) * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        reinterpret_cast<T*>(to)[i] = i < left ? from[i] : T{};
      }
    }
  }
}

/// Scores of the tile with its first `keys` keys, a multiple of 16.
template <class T, AttentionMmaPolicy policy>
__device__ inline void multiply_by_unit(const char* q_tile, const char* k_tile, int keys,
                                        AttentionScores<policy>& s) {
  constexpr int kSteps = policy.dims / 16;  // of an instruction's k
  uint32_t a[kSteps][policy.row_blocks()][4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) load_queries<policy>(q_tile, 0, 2 * step, a[step]);
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
  for (int n = 0; n < policy.keys / 8; n += 2) {
    if (8 * n >= keys) break;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t b[4];
      arch::ldmatrix(b, k_tile + advance_chunks<policy.chunks()>(place, 2 * step) +
                            8 * n * policy.row_bytes());
      arch::mma_m16n8k16<T>(s[0][n], a[step][0], {b[0], b[1]});
      arch::mma_m16n8k16<T>(s[0][n + 1], a[step][0], {b[2], b[3]});
    }
  }
}

/// Turns scores into powers relative to their row's largest, hidden ones into 0.
template <class T, AttentionMmaPolicy policy>
__device__ inline void update_softmax_of_tile(const FlashAttentionParams& params,
                                              const QueryBlock& block, int keys,
                                              AttentionScores<policy>& s,
                                              AttentionRows<policy>& rows) {
  const int last_query = block.first_query + block.num_queries - 1;
  const bool is_modified = modifies_scores(params);
  if (is_modified) {
    const float slope = slope_of(params, block);
    for_each_score<policy>(s, block.first_query, 0, keys, [&](float& score, int query, int key) {
      score = modified_score(params, slope, score, position_of(block, query) - key);
    });
    add_bias<T, policy>(params, block, s, block.first_query, 0, keys);
  }
  const bool sees_all =
      visible_keys(params, block, last_query, last_query).first <= 0 &&
      visible_keys(params, block, block.first_query, block.first_query).last >= keys;
  if (!sees_all) {
    for_each_score<policy>(s, block.first_query, 0, keys, [&](float& score, int query, int key) {
      const KeyRange own = visible_keys(params, block, query, query);
      if (key < own.first || key >= own.last) score = -std::numeric_limits<float>::infinity();
    });
  }
  const float factor = is_modified ? 1.0f : params.scale * kLog2E;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float base = finite_max(largest_score<policy>(s, 0, half, keys) * factor);
    rows.row_sum[0][half] = exponentiate_row<policy>(s, 0, half, keys, factor, base);
  }
}

template <class T, ShortTile short_tile>
__global__ void __launch_bounds__(kShortThreads,
                                  short_policy_of(short_tile).blocks_per_multiprocessor)
    flash_attention_short(const __grid_constant__ FlashAttentionParams params,
                          const __grid_constant__ ShortGrid grid) {
  constexpr AttentionMmaPolicy policy = short_policy_of(short_tile);
  extern __shared__ __align__(128) char shared[];
  const int warp = static_cast<int>(threadIdx.x / 32);
  const uint32_t first_unit = blockIdx.x / grid.blocks_per_unit * grid.units_per_block;
  const auto num_units = static_cast<int>(min(grid.units_per_block, grid.num_units - first_unit));
  const auto first_tile = static_cast<int>(blockIdx.x % grid.blocks_per_unit) * kTilesPerBlock;
  const int num_tiles = min(num_units * grid.tiles_per_unit - first_tile, kTilesPerBlock);
  const int num_rounds = (num_tiles + kShortWarps - 1) / kShortWarps;
  char* own_tile = shared + warp * kTileQueries * policy.row_bytes();

  // The warp's tile of a round: its unit within the block, its head and queries.
  int unit = 0;
  const auto tile_of = [&](int round) {
    const int index = first_tile + warp + round * kShortWarps;
    unit = index / grid.tiles_per_unit;
    const int tile = index % grid.tiles_per_unit;
    QueryBlock block = locate_unit(params, first_unit + static_cast<uint32_t>(unit));
    block.head = block.kv_head * static_cast<uint32_t>(params.heads / params.kv_heads) +
                 static_cast<uint32_t>(tile / grid.tiles_per_head);
    block.first_query = tile % grid.tiles_per_head * kTileQueries;
    block.num_queries = min(params.seq - block.first_query, kTileQueries);
    return block;
  };

  // Start with the keys and the first tiles' queries, then the values.
  arch::follow_grid();
  for (int u = 0; u < num_units; ++u) {
    const QueryBlock own = locate_unit(params, first_unit + static_cast<uint32_t>(u));
    load_unit<T, policy>(params, own, params.k, params.k_strides, params.k_is_aligned,
                         unit_keys<policy>(shared, grid, u, false));
  }
  if (warp < num_tiles) load_tile_queries<T, policy>(params, tile_of(0), own_tile);
  arch::cp_async_commit();
  for (int u = 0; u < num_units; ++u) {
    const QueryBlock own = locate_unit(params, first_unit + static_cast<uint32_t>(u));
    load_unit<T, policy>(params, own, params.v, params.v_strides, params.v_is_aligned,
                         unit_keys<policy>(shared, grid, u, true));
  }
  arch::cp_async_commit();
  arch::cp_async_wait<1>();
  __syncthreads();

  for (int round = 0; round < num_rounds; ++round) {
    const bool is_idle = warp + round * kShortWarps >= num_tiles;
    QueryBlock block{};
    int keys = 0;
    AttentionScores<policy> s = {};
    AttentionRows<policy> rows;
    if (!is_idle) {
      block = tile_of(round);
      if (round > 0) {
        // Over y: a lane's chunks are those that it has stored itself.
        load_tile_queries<T, policy>(params, block, own_tile);
        arch::cp_async_commit();
        arch::cp_async_wait<0>();
        __syncwarp();
      }
      const KeyRange seen =
          visible_keys(params, block, block.first_query, block.first_query + block.num_queries - 1);
      keys = max(seen.last + 15, 0) / 16 * 16;
      multiply_by_unit<T, policy>(own_tile, unit_keys<policy>(shared, grid, unit, false), keys, s);
      update_softmax_of_tile<T, policy>(params, block, keys, s, rows);
    }
    if (round == 0) {  // the values
      arch::cp_async_wait<0>();
      __syncthreads();
    } else {
      __syncwarp();  // y replaces the queries
    }
    if (is_idle) continue;
    add_values<T, policy>(s, unit_keys<policy>(shared, grid, unit, true), keys, rows);
    write_rows<T, policy>(params, block, rows, own_tile, 0);
  }
}

template <class T, ShortTile tile>
cudaError_t launch_short(const FlashAttentionParams& p, cudaStream_t stream) {
  constexpr AttentionMmaPolicy policy = short_policy_of(tile);
  constexpr int64_t kMaxUnitBytes = 64 << 10;
  static_assert(kShortWarps <= kTilesPerBlock, "units share blocks where each has one");
  if (attention_short_blocks(p, p.num_members) > kMaxGridBlocks)
    return cudaErrorInvalidConfiguration;
  const int64_t units = attention_units(p, p.num_members);
  const int64_t tiles_per_head = (p.seq - 1) / kTileQueries + 1;
  const int64_t tiles = p.heads / p.kv_heads * tiles_per_head;
  const int64_t keys = (p.kv_seq + kLoadRows - 1) / kLoadRows * kLoadRows;
  const int64_t unit_bytes = 2 * keys * policy.row_bytes();
  const int64_t at_once = std::clamp<int64_t>(
      std::min(kShortWarps / tiles, kMaxUnitBytes / std::max<int64_t>(unit_bytes, 1)), 1, units);
  const int64_t per_unit = at_once > 1 ? 1 : (tiles - 1) / kTilesPerBlock + 1;
  const int64_t groups = (units - 1) / at_once + 1;
  const ShortGrid grid{static_cast<uint32_t>(units),    static_cast<uint32_t>(at_once),
                       static_cast<uint32_t>(per_unit), static_cast<int>(tiles_per_head),
                       static_cast<int>(tiles),         static_cast<int>(keys)};
  const auto bytes =
      static_cast<int>(kShortWarps * kTileQueries * policy.row_bytes() + at_once * unit_bytes);
  const auto kernel = flash_attention_short<T, tile>;
  if (const cudaError_t status = allow_shared_bytes(kernel, bytes); status != cudaSuccess) {
    return status;
  }
  return launch_kernel(kernel, static_cast<unsigned>(groups * per_unit), kShortThreads,
                       static_cast<size_t>(bytes), stream, p, grid);
}

template <class T>
cudaError_t launch_flash_attention_short(FlashAttentionParams p, cudaStream_t stream) {
  using enum ShortTile;
  set_alignment(p, sizeof(T));
  if (p.kv_seq <= 64 && p.head_dim > 128 && p.head_dim <= 256) {
    return launch_short<T, d256k64>(p, stream);
  }
  if (p.kv_seq <= 128 && p.head_dim <= 128) {
    if (p.head_dim <= 32) return launch_short<T, d32k128>(p, stream);
    if (p.head_dim <= 64) return launch_short<T, d64k128>(p, stream);
    return launch_short<T, d128k128>(p, stream);
  }
  if (p.kv_seq <= 256 && p.head_dim <= 64) {
    if (p.head_dim <= 32) return launch_short<T, d32k256>(p, stream);
    return launch_short<T, d64k256>(p, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
