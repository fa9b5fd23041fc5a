// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention on warp-level matrix instructions (mma.sync m16n8k16), fp16 and bf16, sums in fp32:
// y[i] = sum_j p[i, j] v[j], p = softmax over j of scale q[i] k[j], in one pass over the keys.
//
// Plan: a block has 128 queries of one head, a warp 16 or 32 of them, and every warp visits every
// key; the grid is one-dimensional over (member, batch row, head, queries), so that the limits of
// grid.y and grid.z do not matter. Tiles of keys and values come through flash_attention_tile.cuh's
// ring. For each tile a warp computes
//   s = q k^T        ldmatrix: rows of q are A's, rows of k, k contiguous, are B's columns
//   p = 2^(s c - m)  m the row's largest so far times c, c = scale log2(e); sums and y so far
//                    rescale by 2^(m before - m)
//   y = y + p v      a lane's accumulators of s are an A fragment, so p stays in registers; rows of
//                    v are B's k, which ldmatrix transposes
// and finally divides y by the row's sum of p. Tiles that no query of the block sees are not read,
// tiles that all of them see are not masked. y is stored via q's shared memory, where every warp
// uses its own rows: 16 bytes a lane, contiguous.
// Source: Dao, "FlashAttention-2", 2023, arXiv:2307.08691, sections 3.1 and 3.3.
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_fragments.cuh"
#include "kernels/common/shared_bytes.hpp"

namespace wide::kernels {

/// Kernels are named by the width: nvcc 13.0's host stubs cannot spell a class-type argument.
constexpr AttentionMmaPolicy mma_policy_of(HeadWidth width) {
  switch (width) {
    case HeadWidth::d32:  // 32 KiB
      return {32, 64, 32, 4, 3};
    case HeadWidth::d64:  // 48 KiB
      return {64, 64, 32, 4, 2};
    case HeadWidth::d96:  // 60 KiB
      return {96, 64, 32, 3, 2};
    case HeadWidth::d128:  // 64 KiB: two blocks on compute capability 8.0, too. 64 keys would spill
      return {128, 32, 32, 4, 2};
    case HeadWidth::d192:  // 96 KiB
      return {192, 32, 16, 4, 1};
    case HeadWidth::d256:  // 160 KiB
      return {256, 64, 16, 3, 1};
    case HeadWidth::d256_lean:  // 96 KiB
      return {256, 32, 16, 2, 1};
  }
  return {};
}

/// Whether the kernel has registers for a bias; otherwise the next width has.
constexpr bool takes_bias(HeadWidth width) {
  return width != HeadWidth::d32 && width != HeadWidth::d96;
}

template <class T, HeadWidth width>
__global__ void __launch_bounds__(mma_policy_of(width).threads(),
                                  mma_policy_of(width).blocks_per_multiprocessor)
    flash_attention_mma(const __grid_constant__ FlashAttentionParams params,
                        uint32_t blocks_per_head) {
  constexpr AttentionMmaPolicy policy = mma_policy_of(width);
  constexpr int kSteps = policy.dims / 16;  // of an instruction's k, in q k^T
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();  // before key lengths are read
  const QueryBlock block = locate_queries(params, blocks_per_head, policy.queries());
  const int first_row = static_cast<int>(threadIdx.x / 32) * policy.rows_per_warp;
  const int last_row = min(first_row + policy.rows_per_warp, block.num_queries) - 1;
  const int first_query = block.first_query + first_row;

  // What some query of the block sees, and the end of what the warp sees.
  const KeyTiles tiles(params, block, policy.keys);
  const int warp_end = visible_keys(params, block, first_query, block.first_query + last_row).last;

  // Start with the queries and the first items.
  char* ring_memory = shared + policy.queries() * policy.chunks() * kChunkBytes;
  KeyRing<T, policy.keys, policy.chunks(), policy.stages, policy.threads()> ring(
      params, block, tiles.first * policy.keys, tiles.count, ring_memory);
  if (tiles.count > 0) {
    const Source<T> queries{static_cast<const T*>(params.q) +
                                query_element(params, block, params.q_strides, block.first_query),
                            params.q_strides.row, block.num_queries, params.q_is_aligned};
    load_rows<T, policy.queries(), policy.chunks(), policy.threads(), 4>(
        shared, queries, 0, params.head_dim, HeadPlace<policy.chunks()>{});
  }
  ring.start();

  AttentionRows<policy> rows;
  uint32_t kept[policy.keeps_queries() ? kSteps : 1][policy.row_blocks()][4];
  for (int tile = 0; tile < tiles.count; ++tile) {
    const int first_key = (tiles.first + tile) * policy.keys, end_key = first_key + policy.keys;
    const bool is_idle = last_row < first_row || first_key >= warp_end;
    AttentionScores<policy> s = {};
    const char* k_tile = ring.next_keys(tile);
    if (policy.keeps_queries() && tile == 0) {
#pragma unroll
      for (int step = 0; step < (policy.keeps_queries() ? kSteps : 1); ++step) {
        load_queries<policy>(shared, first_row, 2 * step, kept[step]);
      }
    }
    if (!is_idle) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if constexpr (policy.keeps_queries()) {
          multiply_by_keys<T, policy>(kept[step], k_tile, 2 * step, s);
        } else {
          uint32_t a[policy.row_blocks()][4];
          load_queries<policy>(shared, first_row, 2 * step, a);
          multiply_by_keys<T, policy>(a, k_tile, 2 * step, s);
        }
      }
      const bool is_modified = modifies_scores(params);
      if (is_modified) {
        const float slope = slope_of(params, block);
        for_each_score<policy>(
            s, first_query, first_key, policy.keys, [&](float& score, int query, int key) {
              score = modified_score(params, slope, score, position_of(block, query) - key);
            });
        if constexpr (takes_bias(width)) {
          add_bias<T, policy>(params, block, s, first_query, first_key, policy.keys);
        }
      }
      if (tiles.hides(first_key, end_key)) {
        for_each_score<policy>(s, first_query, first_key, policy.keys,
                               [&](float& score, int query, int key) {
                                 const KeyRange own = visible_keys(params, block, query, query);
                                 if (key < own.first || key >= own.last)
                                   score = -std::numeric_limits<float>::infinity();
                               });
      }
      update_softmax<policy>(s, is_modified ? 1.0f : params.scale * kLog2E, rows);
    }
    const char* v_tile = ring.next_values(tile);
    if (!is_idle) add_values<T, policy>(s, v_tile, policy.keys, rows);
  }
  write_rows<T, policy>(params, block, rows, shared, first_row);
}

template <class T, HeadWidth width>
cudaError_t launch_width(const FlashAttentionParams& params, cudaStream_t stream) {
  constexpr AttentionMmaPolicy policy = mma_policy_of(width);
  static_assert(policy.shared_bytes() <= kLeastSharedBytes || width == HeadWidth::d256);
  static_assert(policy.queries() == kMmaQueries);
  return launch_query_blocks(flash_attention_mma<T, width>, params, policy.queries(),
                             policy.threads(), policy.shared_bytes(), stream);
}

template <class T>
cudaError_t launch_flash_attention_mma(FlashAttentionParams params, cudaStream_t stream) {
  set_alignment(params, sizeof(T));
  const bool has_bias = params.bias != nullptr;
  if (params.head_dim <= 32 && !has_bias) return launch_width<T, HeadWidth::d32>(params, stream);
  if (params.head_dim <= 64) return launch_width<T, HeadWidth::d64>(params, stream);
  if (params.head_dim <= 96 && !has_bias) return launch_width<T, HeadWidth::d96>(params, stream);
  if (params.head_dim <= 128) return launch_width<T, HeadWidth::d128>(params, stream);
  if (params.head_dim <= 192) return launch_width<T, HeadWidth::d192>(params, stream);
  if (params.head_dim > 256) return cudaErrorInvalidValue;
  return params.shared_bytes_per_block >= mma_policy_of(HeadWidth::d256).shared_bytes()
             ? launch_width<T, HeadWidth::d256>(params, stream)
             : launch_width<T, HeadWidth::d256_lean>(params, stream);
}

}  // namespace wide::kernels
