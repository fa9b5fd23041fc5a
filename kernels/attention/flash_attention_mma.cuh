// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention on warp-level matrix instructions (mma.sync m16n8k16), fp16 and bf16, sums in fp32:
// y[i] = sum_j p[i, j] v[j], p = softmax over j of scale q[i] k[j], in one pass over the keys.
//
// Plan: a block has 128 queries of one head, a warp 16 or 32 of them, and every warp meets every
// key; the grid is one line of (member, batch row, head, queries), so no limit of grid.y or grid.z
// is met. Tiles of keys and values come through flash_attention_tile.cuh's ring. Of each tile a
// warp makes
//   s = q k^T        ldmatrix: rows of q are A's, rows of k, k contiguous, are B's columns
//   p = 2^(s c - m)  m the row's largest so far times c, c = scale log2(e); sums and y so far
//                    shrink by 2^(m before - m)
//   y = y + p v      a lane's sums of s are what it holds of A, so p stays in registers; rows of
//                    v are B's k, which ldmatrix transposes
// and divides y by the row's sum of p in the end. Tiles that no query of the block sees are not
// read, tiles that all of them see are not masked. y leaves by way of q's place in shared memory,
// of which every warp uses its own rows: 16 bytes a lane, neighbours side by side.
// Source: Dao, "FlashAttention-2", 2023, arXiv:2307.08691, sections 3.1 and 3.3.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

#include "kernels/arch/math.cuh"
#include "kernels/arch/matrix.cuh"
#include "kernels/arch/opaque.cuh"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_tile.cuh"
#include "kernels/common/numeric.cuh"

namespace wide::kernels {

struct AttentionMmaPolicy {
  int dims;           // of a padded head
  int keys;           // of a tile
  int rows_per_warp;  // queries: 16 or 32
  int stages;         // tiles in shared memory, keys' and values' alike
  int blocks_per_multiprocessor;

  constexpr int queries() const { return 128; }
  constexpr int threads() const { return queries() / rows_per_warp * 32; }
  constexpr int chunks() const { return dims * 2 / kChunkBytes; }
  constexpr int row_bytes() const { return dims * 2; }
  constexpr int row_blocks() const { return rows_per_warp / 16; }
  constexpr int shared_bytes() const { return (queries() + stages * keys) * dims * 2; }
  /// Of q in registers for all of the keys, where there is room for it.
  constexpr bool keeps_queries() const { return dims <= 64; }
};

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
    case HeadWidth::d192:  // 120 KiB
      return {192, 64, 16, 3, 1};
    case HeadWidth::d256:  // 160 KiB
      return {256, 64, 16, 3, 1};
  }
  return {};
}

__device__ inline int lane_index() {
  return static_cast<int>(threadIdx.x % 32);  // unsigned: no correction for what is below 0
}

/// A warp's part of a block, and what its lanes hold of 32 or 16 queries: of an instruction's 16
/// rows, row lane / 4 and the one 8 below.
template <AttentionMmaPolicy policy>
struct AttentionRows {
  float y[policy.row_blocks()][policy.dims / 8][4] = {};
  float most[policy.row_blocks()][2];        ///< base-2 logarithm of the largest power so far
  float total[policy.row_blocks()][2] = {};  ///< of the powers of this lane's columns

  __device__ AttentionRows() {
#pragma unroll
    for (int m = 0; m < policy.row_blocks(); ++m) {
      most[m][0] = most[m][1] = -std::numeric_limits<float>::infinity();
    }
  }
};

template <AttentionMmaPolicy policy>
using AttentionScores = float[policy.row_blocks()][policy.keys / 8][4];

/// The lane's part of 16 rows by 16 columns of q.
template <AttentionMmaPolicy policy>
__device__ inline void load_queries(const char* q_tile, int first_row, int chunk,
                                    uint32_t (&a)[policy.row_blocks()][4]) {
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(first_row + lane % 16, lane / 16);
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
    arch::ldmatrix(
        a[m], q_tile + chunks_further<policy.chunks()>(place, chunk) + 16 * m * policy.row_bytes());
  }
}

template <class T, AttentionMmaPolicy policy>
__device__ inline void multiply_by_keys(const uint32_t (&a)[policy.row_blocks()][4],
                                        const char* k_tile, int chunk, AttentionScores<policy>& s) {
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const char* row = k_tile + chunks_further<policy.chunks()>(place, chunk);
#pragma unroll
  for (int n = 0; n < policy.keys / 8; n += 2) {
    uint32_t b[4];
    arch::ldmatrix(b, row + 8 * n * policy.row_bytes());
#pragma unroll
    for (int m = 0; m < policy.row_blocks(); ++m) {
      arch::mma_m16n8k16<T>(s[m][n], a[m], {b[0], b[1]});
      arch::mma_m16n8k16<T>(s[m][n + 1], a[m], {b[2], b[3]});
    }
  }
}

/// Calls f(score, query, key) for each of the lane's scores; `first_query` is the warp's first.
template <AttentionMmaPolicy policy, class F>
__device__ inline void for_each_score(AttentionScores<policy>& s, int first_query, int first_key,
                                      const F& f) {
  // Few tiles come here: what follows from the lane is not kept for them.
  const int lane = arch::opaque(lane_index());
  const int query_of_lane = first_query + lane / 4, key_of_lane = first_key + lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = query_of_lane + 16 * m + 8 * half;
#pragma unroll
      for (int n = 0; n < policy.keys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          f(s[m][n][2 * half + i], query, key_of_lane + 8 * n + i);
        }
      }
    }
  }
}

/// Scores times `factor` become powers over their row's largest; what was summed up shrinks.
template <AttentionMmaPolicy policy>
__device__ inline void soften(AttentionScores<policy>& s, float factor,
                              AttentionRows<policy>& rows) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = kNone;
#pragma unroll
      for (int n = 0; n < policy.keys / 8; ++n) {
        most = fmaxf(most, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
      }
      // The row's columns are in the four lanes of a group.
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      most = fmaxf(rows.most[m][half], most * factor);
      const float base = most == kNone ? 0.0f : most;  // nothing is seen yet: every power is 0
      const float shrink = arch::exp2_approximately(rows.most[m][half] - base);
      rows.most[m][half] = most;
      float total = 0.0f;
#pragma unroll
      for (int n = 0; n < policy.keys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          s[m][n][i] = arch::exp2_approximately(fmaf(s[m][n][i], factor, -base));
          total += s[m][n][i];
        }
      }
      rows.total[m][half] = rows.total[m][half] * shrink + total;
#pragma unroll
      for (int d = 0; d < policy.dims / 8; ++d) {
        rows.y[m][d][2 * half] *= shrink;
        rows.y[m][d][2 * half + 1] *= shrink;
      }
    }
  }
}

template <class T>
__device__ inline uint32_t pack_pair(float low, float high);
template <>
__device__ inline uint32_t pack_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <>
__device__ inline uint32_t pack_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

/// Two neighbouring blocks of eight keys are an instruction's k.
template <class T, AttentionMmaPolicy policy>
__device__ inline void add_values(const AttentionScores<policy>& p, const char* v_tile,
                                  AttentionRows<policy>& rows) {
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(lane % 16, lane / 16);
#pragma unroll
  for (int n = 0; n < policy.keys / 8; n += 2) {
    uint32_t a[policy.row_blocks()][4];
#pragma unroll
    for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = &p[m][n + i / 2][i % 2 * 2];
        a[m][i] = pack_pair<T>(pair[0], pair[1]);
      }
    }
#pragma unroll
    for (int d = 0; d < policy.dims / 8; d += 2) {
      uint32_t b[4];
      arch::ldmatrix<true>(
          b, v_tile + chunks_further<policy.chunks()>(place, d) + 8 * n * policy.row_bytes());
#pragma unroll
      for (int m = 0; m < policy.row_blocks(); ++m) {
        arch::mma_m16n8k16<T>(rows.y[m][d], a[m], {b[0], b[1]});
        arch::mma_m16n8k16<T>(rows.y[m][d + 1], a[m], {b[2], b[3]});
      }
    }
  }
}

/// Divides, rounds and writes the warp's queries by way of their rows of the tile.
template <class T, AttentionMmaPolicy policy>
__device__ inline void write_rows(const FlashAttentionParams& params, const QueryBlock& block,
                                  AttentionRows<policy>& rows, char* tile, int first_row) {
  constexpr int kVector = kChunkBytes / 2;
  const int lane = lane_index();
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = rows.total[m][half];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const float share = total == 0.0f ? 0.0f : 1.0f / total;  // a query that sees nothing: 0
      const int row = first_row + 16 * m + 8 * half + lane / 4;
#pragma unroll
      for (int d = 0; d < policy.dims / 8; ++d) {
        const float* pair = &rows.y[m][d][2 * half];
        *reinterpret_cast<uint32_t*>(tile + head_offset<policy.chunks()>(row, d) + lane % 4 * 4) =
            pack_pair<T>(pair[0] * share, pair[1] * share);
      }
    }
  }
  __syncwarp();
  const int num_rows = min(block.num_queries - first_row, policy.rows_per_warp);
  T* y = static_cast<T*>(params.y) +
         query_element(params, block, params.y_strides, block.first_query + first_row);
  for (int index = lane; index < num_rows * policy.chunks(); index += 32) {
    const int row = index / policy.chunks(), chunk = index % policy.chunks();
    const int left = params.head_dim - chunk * kVector;
    if (left <= 0) continue;
    const Vec16<T> values = load_vec16(
        reinterpret_cast<const T*>(tile + head_offset<policy.chunks()>(first_row + row, chunk)));
    T* to = y + row * params.y_strides.row + chunk * kVector;
    if (params.y_is_aligned) {
      store_vec16(to, values);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (i < left) to[i] = values.v[i];
      }
    }
  }
}

template <class T, HeadWidth width>
__global__ void __launch_bounds__(mma_policy_of(width).threads(),
                                  mma_policy_of(width).blocks_per_multiprocessor)
    flash_attention_mma(const __grid_constant__ FlashAttentionParams params,
                        uint32_t blocks_per_head) {
  constexpr AttentionMmaPolicy policy = mma_policy_of(width);
  constexpr int kSteps = policy.dims / 16;  // of an instruction's k, in q k^T
  extern __shared__ __align__(128) char shared[];
  const QueryBlock block = locate_queries(params, blocks_per_head, policy.queries());
  const int first_row = static_cast<int>(threadIdx.x / 32) * policy.rows_per_warp;
  const int last_row = min(first_row + policy.rows_per_warp, block.num_queries) - 1;
  const int first_query = block.first_query + first_row;
  const int last_query = block.first_query + block.num_queries - 1;

  // Keys that some query of the block sees, those that all see, and the end of what the warp sees.
  const KeyRange seen = seen_keys(params, block, block.first_query, last_query);
  const KeyRange by_all{seen_keys(params, block, last_query, last_query).first,
                        seen_keys(params, block, block.first_query, block.first_query).last};
  const int warp_end = seen_keys(params, block, first_query, block.first_query + last_row).last;
  const int first_tile = seen.first / policy.keys;
  const int num_tiles = seen.first < seen.last ? (seen.last - 1) / policy.keys + 1 - first_tile : 0;

  // Begin with the queries and the first items.
  char* ring_memory = shared + policy.queries() * policy.chunks() * kChunkBytes;
  KeyRing<T, policy.keys, policy.chunks(), policy.stages, policy.threads()> ring(
      params, block, first_tile * policy.keys, num_tiles, ring_memory);
  if (num_tiles > 0) {
    const Source<T> queries{static_cast<const T*>(params.q) +
                                query_element(params, block, params.q_strides, block.first_query),
                            params.q_strides.row, block.num_queries, params.q_is_aligned};
    load_rows<T, policy.queries(), policy.chunks(), policy.threads(), 4>(
        shared, queries, 0, params.head_dim, HeadPlace<policy.chunks()>{});
  }
  ring.start();

  AttentionRows<policy> rows;
  uint32_t kept[policy.keeps_queries() ? kSteps : 1][policy.row_blocks()][4];
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int first_key = (first_tile + tile) * policy.keys, end_key = first_key + policy.keys;
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
      const bool is_bent = bends_scores(params);
      if (is_bent) {
        const float slope = slope_of(params, block);
        for_each_score<policy>(s, first_query, first_key, [&](float& score, int query, int key) {
          score = bend_score(params, slope, score, position_of(params, query) - key);
        });
      }
      if (first_key < by_all.first || end_key > by_all.last) {
        for_each_score<policy>(s, first_query, first_key, [&](float& score, int query, int key) {
          const KeyRange own = seen_keys(params, block, query, query);
          if (key < own.first || key >= own.last) score = -std::numeric_limits<float>::infinity();
        });
      }
      soften<policy>(s, is_bent ? 1.0f : params.scale * kLog2E, rows);
    }
    const char* v_tile = ring.next_values(tile);
    if (!is_idle) add_values<T, policy>(s, v_tile, rows);
  }
  write_rows<T, policy>(params, block, rows, shared, first_row);
}

template <class T, HeadWidth width>
cudaError_t launch_width(const FlashAttentionParams& params, cudaStream_t stream) {
  constexpr AttentionMmaPolicy policy = mma_policy_of(width);
  return launch_query_blocks(flash_attention_mma<T, width>, params, policy.queries(),
                             policy.threads(), policy.shared_bytes(), stream);
}

template <class T>
cudaError_t launch_flash_attention_mma(FlashAttentionParams params, cudaStream_t stream) {
  set_alignment(params, sizeof(T));
  if (params.head_dim <= 32) return launch_width<T, HeadWidth::d32>(params, stream);
  if (params.head_dim <= 64) return launch_width<T, HeadWidth::d64>(params, stream);
  if (params.head_dim <= 96) return launch_width<T, HeadWidth::d96>(params, stream);
  if (params.head_dim <= 128) return launch_width<T, HeadWidth::d128>(params, stream);
  if (params.head_dim <= 192) return launch_width<T, HeadWidth::d192>(params, stream);
  if (params.head_dim <= 256) return launch_width<T, HeadWidth::d256>(params, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
