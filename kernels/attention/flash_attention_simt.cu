// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention on the fp32 units: y[i] = sum_j p[i, j] v[j], p = softmax over j of scale q[i] k[j], by
// fused multiply-adds in fp32, never tf32, in one pass over the keys.
//
// Plan: a block has 64 queries of one head, 8 rows of 16 threads; a thread has 8 queries, shared by
// its row of threads, a warp 16 neighbours (56, 7 and 14 of d256_lean). Tiles of keys and values
// come through flash_attention_tile.cuh's ring; a warp that sees nothing of one skips it. For each
// tile a thread computes
//   scores   8 by keys / 16 of them, four of the head's elements at a time
//   powers   relative to the row's largest score so far, agreed upon by 16 lanes; they go to the
//            row of threads' own rows of shared memory
//   sums     8 by dims / 16 of them, four keys at a time: powers come back as vectors, values are
//            read contiguously
// The sums are rescaled when a row's largest score grows, and finally divided by the row's powers.
// Every row is summed in a fixed order, whatever else is in the launch.
#include <limits>

#include "kernels/arch/grid.cuh"
#include "kernels/arch/opaque.cuh"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_tile.cuh"
#include "kernels/common/shared_bytes.hpp"

namespace wide::kernels {

namespace {

constexpr int kColumns = 16;  // threads per row
constexpr int kRows = 8;      // of threads
constexpr int kThreads = kRows * kColumns;

struct AttentionSimtPolicy {
  int dims;  // of a padded head
  int keys;  // of a tile
  int stages;
  int blocks_per_multiprocessor;
  int own = 8;  // queries per thread

  constexpr int queries() const { return kRows * own; }
  constexpr int warp_queries() const { return 2 * own; }
  constexpr int chunks() const { return dims * 4 / kChunkBytes; }
  /// Floats in a row of powers. Two rows of threads of a warp write 16 banks apart.
  constexpr int pitch() const { return keys % 32 == 0 ? keys + 16 : keys; }
  /// Neighbouring elements of a head that a thread owns: one vector.
  constexpr int vector() const { return dims / kColumns < 4 ? dims / kColumns : 4; }
  constexpr int vectors() const { return dims / kColumns / vector(); }
  constexpr int shared_bytes() const {
    return ((queries() + stages * keys) * dims + queries() * pitch()) * 4;
  }
};

constexpr AttentionSimtPolicy simt_policy_of(HeadWidth width) {
  switch (width) {
    case HeadWidth::d32:  // 52 KiB
      return {32, 64, 3, 3};
    case HeadWidth::d64:  // 52 KiB
      return {64, 32, 3, 3};
    case HeadWidth::d128:  // 76 KiB
      return {128, 32, 2, 2};
    case HeadWidth::d256_lean:  // 91.5 KiB
      return {256, 16, 2, 1, 7};
    default:  // 140 KiB
      return {256, 32, 2, 1};
  }
}

/// The i-th query of a row of threads: a warp's two rows alternate, so that they read neighbouring
/// rows of shared memory, which are in different banks.
template <AttentionSimtPolicy policy>
__device__ inline int own_query(int row, int i) {
  return row / 2 * policy.warp_queries() + 2 * i + row % 2;
}

/// A thread's accumulators for its queries.
template <AttentionSimtPolicy policy>
struct ThreadSums {
  float y[policy.own][policy.dims / kColumns] = {};
  float row_max[policy.own];       ///< base-2 logarithm of the largest power so far
  float row_sum[policy.own] = {};  ///< of the powers of this thread's columns

  __device__ ThreadSums() {
#pragma unroll
    for (float& of_row : row_max) of_row = -std::numeric_limits<float>::infinity();
  }
};

template <AttentionSimtPolicy policy>
using ThreadScores = float[policy.own][policy.keys / kColumns];

template <AttentionSimtPolicy policy>
__device__ inline float4 load_chunk(const char* tile, int row, int chunk) {
  return *reinterpret_cast<const float4*>(tile + head_offset<policy.chunks()>(row, chunk));
}

template <AttentionSimtPolicy policy>
__device__ inline void multiply_by_keys(const char* q_tile, const char* k_tile, int row, int column,
                                        ThreadScores<policy>& s) {
#pragma unroll 2
  for (int chunk = 0; chunk < policy.chunks(); ++chunk) {
    float4 q[policy.own];
#pragma unroll
    for (int i = 0; i < policy.own; ++i)
      q[i] = load_chunk<policy>(q_tile, own_query<policy>(row, i), chunk);
#pragma unroll
    for (int j = 0; j < policy.keys / kColumns; ++j) {
      const float4 k = load_chunk<policy>(k_tile, column + kColumns * j, chunk);
#pragma unroll
      for (int i = 0; i < policy.own; ++i) {
        s[i][j] = fmaf(q[i].x, k.x, s[i][j]);
        s[i][j] = fmaf(q[i].y, k.y, s[i][j]);
        s[i][j] = fmaf(q[i].z, k.z, s[i][j]);
        s[i][j] = fmaf(q[i].w, k.w, s[i][j]);
      }
    }
  }
}

/// Reduces over the 16 lanes of a row, in each of them, in a fixed order.
template <class F>
__device__ inline float over_columns(float value, const F& f) {
#pragma unroll
  for (int distance = kColumns / 2; distance > 0; distance /= 2) {
    value = f(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

/// Turns scores times `factor` into powers relative to their row's largest, in shared memory;
/// rescales the sums.
template <AttentionSimtPolicy policy>
__device__ inline void update_softmax(ThreadScores<policy>& s, float factor, int row, int column,
                                      float* powers, ThreadSums<policy>& sums) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int i = 0; i < policy.own; ++i) {
    float row_max = kNone;
#pragma unroll
    for (const float score : s[i]) row_max = fmaxf(row_max, score);
    row_max = over_columns(row_max, [](float a, float b) { return fmaxf(a, b); });
    row_max = fmaxf(sums.row_max[i], row_max * factor);
    const float base = row_max == kNone ? 0.0f : row_max;  // nothing is seen yet: every power is 0
    const float rescale = arch::exp2_approximately(sums.row_max[i] - base);
    sums.row_max[i] = row_max;
    sums.row_sum[i] *= rescale;
#pragma unroll
    for (int j = 0; j < policy.keys / kColumns; ++j) {
      const float power = arch::exp2_approximately(fmaf(s[i][j], factor, -base));
      sums.row_sum[i] += power;
      powers[own_query<policy>(row, i) * policy.pitch() + column + kColumns * j] = power;
    }
#pragma unroll
    for (float& y : sums.y[i]) y *= rescale;
  }
}

template <AttentionSimtPolicy policy>
__device__ inline void add_values(const float* powers, const char* v_tile, int row, int column,
                                  ThreadSums<policy>& sums) {
  constexpr int kVector = policy.vector(), kVectors = policy.vectors();
  constexpr int kPerChunk = 4 / kVector;  // threads that share a chunk of values
#pragma unroll 1
  for (int key = 0; key < policy.keys; key += 4) {
    float p[policy.own][4];
#pragma unroll
    for (int i = 0; i < policy.own; ++i) {
      *reinterpret_cast<float4*>(p[i]) = *reinterpret_cast<const float4*>(
          powers + own_query<policy>(row, i) * policy.pitch() + key);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int c = 0; c < kVectors; ++c) {
        const char* at = v_tile +
                         head_offset<policy.chunks()>(key + k, column / kPerChunk + kColumns * c) +
                         column % kPerChunk * kVector * 4;
        float v[kVector];
        if constexpr (kVector == 4) {
          *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(at);
        } else {
          *reinterpret_cast<float2*>(v) = *reinterpret_cast<const float2*>(at);
        }
#pragma unroll
        for (int e = 0; e < kVector; ++e) {
#pragma unroll
          for (int i = 0; i < policy.own; ++i) {
            sums.y[i][c * kVector + e] = fmaf(p[i][k], v[e], sums.y[i][c * kVector + e]);
          }
        }
      }
    }
  }
}

template <AttentionSimtPolicy policy>
__device__ inline void write_rows(const FlashAttentionParams& params, const QueryBlock& block,
                                  int row, int column, const ThreadSums<policy>& sums) {
  constexpr int kVector = policy.vector();
#pragma unroll
  for (int i = 0; i < policy.own; ++i) {
    const float row_sum = over_columns(sums.row_sum[i], [](float a, float b) { return a + b; });
    const float share = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;  // a query that sees nothing: 0
    const int query = own_query<policy>(row, i);
    if (query >= block.num_queries) continue;
    float* y = static_cast<float*>(params.y) +
               query_element(params, block, params.y_strides, block.first_query + query);
#pragma unroll
    for (int c = 0; c < policy.vectors(); ++c) {
      const int first = (column + kColumns * c) * kVector;
      float values[kVector];
#pragma unroll
      for (int e = 0; e < kVector; ++e) values[e] = sums.y[i][c * kVector + e] * share;
      if (params.y_is_aligned) {
        if (first >= params.head_dim) continue;
        if constexpr (kVector == 4) {
          __stwb(reinterpret_cast<float4*>(y + first), *reinterpret_cast<const float4*>(values));
        } else {
          __stwb(reinterpret_cast<float2*>(y + first), *reinterpret_cast<const float2*>(values));
        }
        continue;
      }
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        if (first + e < params.head_dim) y[first + e] = values[e];
      }
    }
  }
}

template <HeadWidth width>
__global__ void __launch_bounds__(kThreads, simt_policy_of(width).blocks_per_multiprocessor)
    flash_attention_simt(const __grid_constant__ FlashAttentionParams params,
                         uint32_t blocks_per_head) {
  constexpr AttentionSimtPolicy policy = simt_policy_of(width);
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();  // before key lengths are read
  const QueryBlock block = locate_queries(params, blocks_per_head, policy.queries());
  const int row = static_cast<int>(threadIdx.x / kColumns);
  const int column = static_cast<int>(threadIdx.x % kColumns);
  const int last_query = block.first_query + block.num_queries - 1;
  const int warp_first = block.first_query + own_query<policy>(row / 2 * 2, 0);
  const int warp_last = min(warp_first + policy.warp_queries() - 1, last_query);
  const int warp_end =
      warp_last < warp_first ? 0 : visible_keys(params, block, warp_first, warp_last).last;
  const KeyTiles tiles(params, block, policy.keys);

  // Start with the queries and the first items.
  auto* powers = reinterpret_cast<float*>(shared);
  char* q_tile = shared + policy.queries() * policy.pitch() * 4;
  KeyRing<float, policy.keys, policy.chunks(), policy.stages, kThreads> ring(
      params, block, tiles.first * policy.keys, tiles.count,
      q_tile + policy.queries() * policy.dims * 4);
  if (tiles.count > 0) {
    const Source<float> queries{
        static_cast<const float*>(params.q) +
            query_element(params, block, params.q_strides, block.first_query),
        params.q_strides.row, block.num_queries, params.q_is_aligned};
    load_rows<float, policy.queries(), policy.chunks(), kThreads, 4>(
        q_tile, queries, 0, params.head_dim, HeadPlace<policy.chunks()>{});
  }
  ring.start();

  ThreadSums<policy> sums;
  const bool is_modified = modifies_scores(params);
  const float factor = is_modified ? 1.0f : params.scale * kLog2E;
  for (int tile = 0; tile < tiles.count; ++tile) {
    const int first_key = (tiles.first + tile) * policy.keys, end_key = first_key + policy.keys;
    const bool is_partial = tiles.hides(first_key, end_key);
    const bool is_idle = first_key >= warp_end;
    const char* k_tile = ring.next_keys(tile);
    if (!is_idle) {
      ThreadScores<policy> s = {};
      multiply_by_keys<policy>(q_tile, k_tile, row, column, s);
      if (is_modified || is_partial) {
        const float slope = slope_of(params, block);
#pragma unroll
        for (int i = 0; i < policy.own; ++i) {
          const int query = block.first_query + own_query<policy>(row, i);
          const KeyRange own = visible_keys(params, block, query, query);
#pragma unroll
          for (int j = 0; j < policy.keys / kColumns; ++j) {
            const int key = first_key + column + kColumns * j;
            if (is_modified) {
              s[i][j] = modified_score(params, slope, s[i][j],
                                       position_of(block, arch::opaque(query)) - key);
              if (params.bias != nullptr) {
                s[i][j] += score_bias(params, bias_row<float>(params, block, query), key);
              }
            }
            if (key < own.first || key >= own.last) {
              s[i][j] = -std::numeric_limits<float>::infinity();
            }
          }
        }
      }
      update_softmax<policy>(s, factor, row, column, powers, sums);
    }
    // The barrier in between also makes its row's powers visible to every thread.
    const char* v_tile = ring.next_values(tile);
    if (!is_idle) add_values<policy>(powers, v_tile, row, column, sums);
  }
  write_rows<policy>(params, block, row, column, sums);
}

template <HeadWidth width>
cudaError_t launch_width(const FlashAttentionParams& params, cudaStream_t stream) {
  constexpr AttentionSimtPolicy policy = simt_policy_of(width);
  static_assert(policy.queries() >= kSimtLeastQueries);
  static_assert(policy.shared_bytes() <= kLeastSharedBytes || width == HeadWidth::d256);
  return launch_query_blocks(flash_attention_simt<width>, params, policy.queries(), kThreads,
                             policy.shared_bytes(), stream);
}

}  // namespace

cudaError_t launch_flash_attention_simt(FlashAttentionParams params, cudaStream_t stream) {
  set_alignment(params, sizeof(float));
  if (params.head_dim <= 32) return launch_width<HeadWidth::d32>(params, stream);
  if (params.head_dim <= 64) return launch_width<HeadWidth::d64>(params, stream);
  if (params.head_dim <= 128) return launch_width<HeadWidth::d128>(params, stream);
  if (params.head_dim > 256) return cudaErrorInvalidValue;
  return params.shared_bytes_per_block >= simt_policy_of(HeadWidth::d256).shared_bytes()
             ? launch_width<HeadWidth::d256>(params, stream)
             : launch_width<HeadWidth::d256_lean>(params, stream);
}

}  // namespace wide::kernels
