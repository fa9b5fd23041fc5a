// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A warp's fragments in attention on mma.sync m16n8k16, and their operations: scores of its queries
// and a tile of keys, their powers, sums of values. A lane's score accumulators are its A fragment
// of the next product, so powers stay in registers. Loops over keys may end early, at a bound that
// is uniform over the warp; where it is the tile's size, the check is compiled away.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

#include "kernels/arch/math.cuh"
#include "kernels/arch/matrix.cuh"
#include "kernels/arch/opaque.cuh"
#include "kernels/attention/flash_attention_tile.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/common/pack_pair.cuh"

namespace wide::kernels {

struct AttentionMmaPolicy {
  int dims;           // of a padded head
  int keys;           // of a tile
  int rows_per_warp;  // queries: 16 or 32
  int stages;         // tiles in shared memory, of keys and values alike
  int blocks_per_multiprocessor;

  constexpr int queries() const { return 128; }
  constexpr int threads() const { return queries() / rows_per_warp * 32; }
  constexpr int chunks() const { return dims * 2 / kChunkBytes; }
  constexpr int row_bytes() const { return dims * 2; }
  constexpr int row_blocks() const { return rows_per_warp / 16; }
  constexpr int shared_bytes() const { return (queries() + stages * keys) * dims * 2; }
  /// Whether q stays in registers for all keys, where there is room.
  constexpr bool keeps_queries() const { return dims <= 64; }
};

__device__ inline int lane_index() {
  return static_cast<int>(threadIdx.x % 32);  // unsigned: no correction for negative values
}

/// A warp's part of a block: what a lane holds of 32 or 16 queries, namely row lane / 4 and the one
/// 8 below of an instruction's 16 rows.
template <AttentionMmaPolicy policy>
struct AttentionRows {
  float y[policy.row_blocks()][policy.dims / 8][4] = {};
  float row_max[policy.row_blocks()][2];       ///< base-2 logarithm of the largest power so far
  float row_sum[policy.row_blocks()][2] = {};  ///< of the powers of this lane's columns

  __device__ AttentionRows() {
#pragma unroll
    for (int m = 0; m < policy.row_blocks(); ++m) {
      row_max[m][0] = row_max[m][1] = -std::numeric_limits<float>::infinity();
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
        a[m], q_tile + advance_chunks<policy.chunks()>(place, chunk) + 16 * m * policy.row_bytes());
  }
}

template <class T, AttentionMmaPolicy policy>
__device__ inline void multiply_by_keys(const uint32_t (&a)[policy.row_blocks()][4],
                                        const char* k_tile, int chunk, AttentionScores<policy>& s) {
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const char* row = k_tile + advance_chunks<policy.chunks()>(place, chunk);
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

/// Calls f(score, query, key) for each of the lane's scores of the first `keys` keys; `first_query`
/// is the warp's first.
template <AttentionMmaPolicy policy, class F>
__device__ inline void for_each_score(AttentionScores<policy>& s, int first_query, int first_key,
                                      int keys, const F& f) {
  // Few tiles need this: values derived from the lane are not kept for them.
  const int lane = arch::opaque(lane_index());
  const int query_of_lane = first_query + lane / 4, key_of_lane = first_key + lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = query_of_lane + 16 * m + 8 * half;
#pragma unroll
      for (int n = 0; n < policy.keys / 8; ++n) {
        if (8 * n >= keys) break;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          f(s[m][n][2 * half + i], query, key_of_lane + 8 * n + i);
        }
      }
    }
  }
}

/// Adds the bias, if any, to the lane's modified scores of the first `keys` keys.
template <class T, AttentionMmaPolicy policy>
__device__ inline void add_bias(const FlashAttentionParams& params, const QueryBlock& block,
                                AttentionScores<policy>& s, int first_query, int first_key,
                                int keys) {
  if (params.bias == nullptr) return;
  const int lane = arch::opaque(lane_index());
  const int key_of_lane = first_key + lane % 4 * 2;
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* row = bias_row<T>(params, block, first_query + lane / 4 + 16 * m + 8 * half);
#pragma unroll
      for (int n = 0; n < policy.keys / 8; ++n) {
        if (8 * n >= keys) break;
        s[m][n][2 * half] += score_bias(params, row, key_of_lane + 8 * n);
        s[m][n][2 * half + 1] += score_bias(params, row, key_of_lane + 8 * n + 1);
      }
    }
  }
}

/// The largest of a row's first `keys` scores: its columns are in a group of four lanes.
template <AttentionMmaPolicy policy>
__device__ inline float largest_score(const AttentionScores<policy>& s, int m, int half, int keys) {
  float row_max = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int n = 0; n < policy.keys / 8; ++n) {
    if (8 * n >= keys) break;
    row_max = fmaxf(row_max, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
  }
  row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffffu, row_max, 1));
  return fmaxf(row_max, __shfl_xor_sync(0xffffffffu, row_max, 2));
}

/// Replaces the row's first `keys` scores by 2^(score factor - base); returns this lane's sum.
template <AttentionMmaPolicy policy>
__device__ inline float exponentiate_row(AttentionScores<policy>& s, int m, int half, int keys,
                                         float factor, float base) {
  float row_sum = 0.0f;
#pragma unroll
  for (int n = 0; n < policy.keys / 8; ++n) {
    if (8 * n >= keys) break;
#pragma unroll
    for (int i = 2 * half; i < 2 * half + 2; ++i) {
      s[m][n][i] = arch::exp2_approximately(fmaf(s[m][n][i], factor, -base));
      row_sum += s[m][n][i];
    }
  }
  return row_sum;
}

/// The exponent that is subtracted: the largest, or 0 where nothing is seen and every power is 0.
__device__ inline float finite_max(float row_max) {
  return row_max == -std::numeric_limits<float>::infinity() ? 0.0f : row_max;
}

/// Turns scores times `factor` into powers relative to their row's largest; rescales the sums.
template <AttentionMmaPolicy policy>
__device__ inline void update_softmax(AttentionScores<policy>& s, float factor,
                                      AttentionRows<policy>& rows) {
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float row_max =
          fmaxf(rows.row_max[m][half], largest_score<policy>(s, m, half, policy.keys) * factor);
      const float base = finite_max(row_max);
      const float rescale = arch::exp2_approximately(rows.row_max[m][half] - base);
      rows.row_max[m][half] = row_max;
      const float row_sum = exponentiate_row<policy>(s, m, half, policy.keys, factor, base);
      rows.row_sum[m][half] = rows.row_sum[m][half] * rescale + row_sum;
#pragma unroll
      for (int d = 0; d < policy.dims / 8; ++d) {
        rows.y[m][d][2 * half] *= rescale;
        rows.y[m][d][2 * half + 1] *= rescale;
      }
    }
  }
}

/// For the first `keys` keys, a multiple of 16: two neighbouring blocks of eight are an
/// instruction's k.
template <class T, AttentionMmaPolicy policy>
__device__ inline void add_values(const AttentionScores<policy>& p, const char* v_tile, int keys,
                                  AttentionRows<policy>& rows) {
  const int lane = lane_index();
  const int place = head_offset<policy.chunks()>(lane % 16, lane / 16);
#pragma unroll
  for (int n = 0; n < policy.keys / 8; n += 2) {
    if (8 * n >= keys) break;
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
          b, v_tile + advance_chunks<policy.chunks()>(place, d) + 8 * n * policy.row_bytes());
#pragma unroll
      for (int m = 0; m < policy.row_blocks(); ++m) {
        arch::mma_m16n8k16<T>(rows.y[m][d], a[m], {b[0], b[1]});
        arch::mma_m16n8k16<T>(rows.y[m][d + 1], a[m], {b[2], b[3]});
      }
    }
  }
}

/// Divides, rounds and stores the warp's queries via their rows of the tile.
template <class T, AttentionMmaPolicy policy>
__device__ inline void write_rows(const FlashAttentionParams& params, const QueryBlock& block,
                                  AttentionRows<policy>& rows, char* tile, int first_row) {
  constexpr int kVector = kChunkBytes / 2;
  const int lane = lane_index();
#pragma unroll
  for (int m = 0; m < policy.row_blocks(); ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float row_sum = rows.row_sum[m][half];
      row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 1);
      row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 2);
      const float share = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;  // a query that sees nothing: 0
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

}  // namespace wide::kernels
