// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention of few queries on many keys, for generating token by token: fp16 and bf16 on warp-level
// matrix instructions (mma.sync m16n8k16), bound by reading keys and values.
//
// Plan: the queries of all heads that share keys are rows of one tile of 16, so that keys are read
// once. A block has a part of such a unit's keys; each of its four warps takes every fourth tile,
// through its own ring, without block-wide barriers:
//
//   warp   wait for the tile | s = q k^T | p, rescale | y += p v | load the tile `stages` further
//
// Finally the warps' sums are merged in shared memory. If a unit's keys are divided into
// several parts, a second launch merges these by the same rule: for parts j with largest
// exponents m[j] and sums of powers l[j],
//
//   m = max m[j],   l = sum_j 2^(m[j] - m) l[j],   y = sum_j 2^(m[j] - m) y[j] / l
//
// A unit's parts, warps and tiles do not depend on the number of members, nor do its bits.
// Source: Dao et al., "Flash-Decoding for long-context inference", 2023 (the division of keys).
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/attention/flash_attention_blocks.hpp"
#include "kernels/attention/flash_attention_decode.hpp"
#include "kernels/attention/flash_attention_fragments.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/common/shared_bytes.hpp"
#include "kernels/common/vector_load.cuh"

namespace wide::kernels {

constexpr int kDecodeWarps = 4, kDecodeThreads = 32 * kDecodeWarps;
constexpr int kDecodeTileRows = static_cast<int>(kDecodeRows);

enum class DecodeWidth : uint8_t { d32, d64, d128, d256 };

/// A tile of keys with its values takes 8 KiB, of the widest heads 16: rings of 64 KiB a block.
constexpr AttentionMmaPolicy decode_policy_of(DecodeWidth width) {
  switch (width) {
    case DecodeWidth::d32:
      return {32, 64, 16, 2, 3};
    case DecodeWidth::d64:
      return {64, 32, 16, 2, 3};
    case DecodeWidth::d128:
      return {128, 16, 16, 2, 3};
    case DecodeWidth::d256:
      return {256, 16, 16, 1, 2};
  }
  return {};
}

/// Sums of rows for merging: row pitches of a multiple of 32 floats would cause bank conflicts.
template <int dims>
struct DecodePart {
  static constexpr int kPitch = dims + 8;
  float y[kDecodeTileRows][kPitch];
  float row_max[kDecodeTileRows], row_sum[kDecodeTileRows];
};

template <AttentionMmaPolicy policy>
struct DecodeStorage {
  static constexpr int kTileBytes = policy.keys * policy.row_bytes();
  alignas(128) char q[kDecodeTileRows * policy.row_bytes()];
  union {
    char ring[kDecodeWarps][policy.stages][2][kTileBytes];  // keys, values
    DecodePart<policy.dims> parts[kDecodeWarps];            // when the rings are drained
  };
};

/// The queries of a unit as rows: head by head.
struct DecodeRows {
  int seq, count;

  __device__ explicit DecodeRows(const FlashAttentionParams& p)
      : seq(p.seq), count(p.seq * static_cast<int>(p.heads / p.kv_heads)) {}
  __device__ int query(int row) const { return row % seq; }
  __device__ uint32_t head(const FlashAttentionParams& p, const QueryBlock& unit, int row) const {
    return unit.kv_head * static_cast<uint32_t>(p.heads / p.kv_heads) +
           static_cast<uint32_t>(row / seq);
  }
  /// Where the row's query, or its result, begins.
  __device__ int64_t element(const FlashAttentionParams& p, const QueryBlock& unit,
                             const RowStrides& strides, int row) const {
    QueryBlock block = unit;
    block.head = head(p, unit, row);
    return query_element(p, block, strides, query(row));
  }
};

/// A unit: a member's batch row's key head. All of its queries belong to it.
__device__ inline QueryBlock decode_unit(const FlashAttentionParams& p, uint32_t unit) {
  QueryBlock block{};
  const auto kv_heads = static_cast<uint32_t>(p.kv_heads), batch = static_cast<uint32_t>(p.batch);
  block.kv_head = unit % kv_heads;
  block.batch_row = unit / kv_heads % batch;
  block.member = unit / kv_heads / batch;
  block.num_queries = p.seq;
  find_keys(p, block);
  return block;
}

template <class T, AttentionMmaPolicy policy>
__device__ inline void load_decode_queries(const FlashAttentionParams& p, const QueryBlock& unit,
                                           char* tile) {
  constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  const DecodeRows rows(p);
  for (int index = static_cast<int>(threadIdx.x); index < kDecodeTileRows * policy.chunks();
       index += kDecodeThreads) {
    const int row = index / policy.chunks(), chunk = index % policy.chunks();
    const int left = row < rows.count ? min(p.head_dim - chunk * kVector, kVector) : 0;
    const T* q = static_cast<const T*>(p.q);
    if (left > 0) q += rows.element(p, unit, p.q_strides, row) + chunk * kVector;
    char* to = tile + head_offset<policy.chunks()>(row, chunk);
    if (p.q_is_aligned) {
      arch::cp_async_16(to, q, max(left, 0) * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) reinterpret_cast<T*>(to)[i] = i < left ? q[i] : T{};
    }
  }
}

/// A warp's ring: tiles of keys with their values.
template <class T, AttentionMmaPolicy policy>
struct DecodeRing {
  char (*stages)[2][DecodeStorage<policy>::kTileBytes];
  Source<T> keys, values;
  int head_dim;

  /// By the warp, as one group of copies.
  __device__ void load(int first_key, int key_length, int stage) {
    const auto bring = [&](Source<T> source, char* tile) {
      source.base += first_key * source.row_stride;
      source.num_rows = key_length - first_key;
      load_rows<T, policy.keys, policy.chunks(), 32, 4>(tile, source, 0, head_dim,
                                                        HeadPlace<policy.chunks()>{}, lane_index());
    };
    bring(keys, stages[stage][0]);
    bring(values, stages[stage][1]);
  }
};

/// Finishes the lane's scores of its two rows; hidden ones are -infinity. Returns the factor that
/// turns them into base-2 exponents.
template <class T, AttentionMmaPolicy policy>
__device__ inline float finish_decode_scores(const FlashAttentionParams& p, const QueryBlock& unit,
                                             const KeyTiles& tiles, int first_key,
                                             AttentionScores<policy>& s) {
  const bool is_modified = modifies_scores(p),
             is_cut = tiles.hides(first_key, first_key + policy.keys);
  if (!is_modified && !is_cut) return p.scale * kLog2E;
  const DecodeRows rows(p);
  const int lane = lane_index();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(lane / 4 + 8 * half, rows.count - 1);  // missing rows: any row
    QueryBlock block = unit;
    block.head = rows.head(p, unit, row);
    const int query = rows.query(row);
    const KeyRange own = visible_keys(p, block, query, query);
    const float slope = slope_of(p, block);
    const T* bias = p.bias == nullptr ? nullptr : bias_row<T>(p, block, query);
#pragma unroll
    for (int n = 0; n < policy.keys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = first_key + 8 * n + lane % 4 * 2 + i;
        float& score = s[0][n][2 * half + i];
        if (is_modified) score = modified_score(p, slope, score, position_of(block, query) - key);
        if (bias != nullptr) score += score_bias(p, bias, key);
        if (key < own.first || key >= own.last) score = -std::numeric_limits<float>::infinity();
      }
    }
  }
  return is_modified ? 1.0f : p.scale * kLog2E;
}

/// Writes the warp's sums for merging.
template <AttentionMmaPolicy policy>
__device__ inline void write_part(const AttentionRows<policy>& rows,
                                  DecodePart<policy.dims>& part) {
  const int lane = lane_index();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    float row_sum = rows.row_sum[0][half];
    row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 1);
    row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 2);
    if (lane % 4 == 0) part.row_max[row] = rows.row_max[0][half], part.row_sum[row] = row_sum;
#pragma unroll
    for (int d = 0; d < policy.dims / 8; ++d) {
      *reinterpret_cast<float2*>(&part.y[row][8 * d + lane % 4 * 2]) =
          make_float2(rows.y[0][d][2 * half], rows.y[0][d][2 * half + 1]);
    }
  }
}

/// A row merged from several parts: each of eight threads has four neighbours of every 32.
template <int dims>
struct DecodeRow {
  float y[dims / 32][4] = {};
  float row_max = -std::numeric_limits<float>::infinity(), row_sum = 0.0f;

  /// load(part, element) returns four sums of the row, max_of(part) and sum_of(part) their
  /// largest exponent and sum of powers.
  template <class Load, class Max, class Sum>
  __device__ void merge(int num_parts, const Load& load, const Max& max_of, const Sum& sum_of) {
    for (int part = 0; part < num_parts; ++part) row_max = fmaxf(row_max, max_of(part));
    const float base = finite_max(row_max);
    for (int part = 0; part < num_parts; ++part) {
      const float weight = arch::exp2_approximately(max_of(part) - base);
      row_sum += weight * sum_of(part);
#pragma unroll
      for (int i = 0; i < dims / 32; ++i) {
        const float4 sums = load(part, first(i));
        y[i][0] = fmaf(weight, sums.x, y[i][0]);
        y[i][1] = fmaf(weight, sums.y, y[i][1]);
        y[i][2] = fmaf(weight, sums.z, y[i][2]);
        y[i][3] = fmaf(weight, sums.w, y[i][3]);
      }
    }
  }
  /// The first of the thread's `i`-th four elements.
  __device__ static int first(int i) {
    return 32 * i + static_cast<int>(threadIdx.x) % 8 * 4;
  }
};

template <class T, int dims>
__device__ inline void write_row(const FlashAttentionParams& p, const QueryBlock& unit, int row,
                                 const DecodeRow<dims>& merged) {
  const DecodeRows rows(p);
  // A query that sees nothing: 0.
  const float share = merged.row_sum == 0.0f ? 0.0f : 1.0f / merged.row_sum;
  T* y = static_cast<T*>(p.y) + rows.element(p, unit, p.y_strides, row);
#pragma unroll
  for (int i = 0; i < dims / 32; ++i) {
    const int first = merged.first(i);
    if (first >= p.head_dim) continue;
    const uint2 packed{pack_pair<T>(merged.y[i][0] * share, merged.y[i][1] * share),
                       pack_pair<T>(merged.y[i][2] * share, merged.y[i][3] * share)};
    if (p.y_is_aligned) {
      *reinterpret_cast<uint2*>(y + first) = packed;
      continue;
    }
    const auto* values = reinterpret_cast<const T*>(&packed);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (first + e < p.head_dim) y[first + e] = values[e];
    }
  }
}

/// Layout in global memory: rows of sums, largest exponents, totals.
template <int dims>
struct DecodePartPlace {
  float* floats;

  __device__ DecodePartPlace(const FlashAttentionDecodeParams& params, int64_t part)
      : floats(params.parts + part * kDecodeRows * (dims + 2)) {}
  __device__ float4* sums(int row, int element) const {
    return reinterpret_cast<float4*>(floats + row * dims + element);
  }
  __device__ float& row_max(int row) const { return floats[kDecodeRows * dims + row]; }
  __device__ float& row_sum(int row) const { return floats[kDecodeRows * (dims + 1) + row]; }
};

template <class T, DecodeWidth width>
__global__ void __launch_bounds__(kDecodeThreads, decode_policy_of(width).blocks_per_multiprocessor)
    flash_attention_decode(const __grid_constant__ FlashAttentionDecodeParams params) {
  constexpr AttentionMmaPolicy policy = decode_policy_of(width);
  constexpr int kRoundKeys = kDecodeWarps * policy.keys;
  extern __shared__ __align__(128) char shared[];
  auto& s = *reinterpret_cast<DecodeStorage<policy>*>(shared);
  const FlashAttentionParams& p = params.attention;
  const auto num_parts = static_cast<uint32_t>(params.num_parts);
  arch::follow_grid();  // before key lengths are read
  const QueryBlock unit = decode_unit(p, blockIdx.x / num_parts);
  const auto part = static_cast<int64_t>(blockIdx.x % num_parts);
  const int warp = static_cast<int>(threadIdx.x / 32);

  // The block's rounds of keys, one tile per warp.
  const KeyTiles tiles(p, unit, kRoundKeys);
  const int first_round = tiles.first + static_cast<int>(tiles.count * part / num_parts);
  const int end_round = tiles.first + static_cast<int>(tiles.count * (part + 1) / num_parts);
  const auto first_key = [&](int round) { return round * kRoundKeys + warp * policy.keys; };
  DecodeRing<T, policy> ring{s.ring[warp],
                             {static_cast<const T*>(p.k) + key_element(p, unit, p.k_strides),
                              p.k_strides.row, 0, p.k_is_aligned},
                             {static_cast<const T*>(p.v) + key_element(p, unit, p.v_strides),
                              p.v_strides.row, 0, p.v_is_aligned},
                             p.head_dim};
  const auto begin = [&](int round) {
    const int stage = (round - first_round) % policy.stages;
    if (round < end_round) ring.load(first_key(round), unit.key_length, stage);
    arch::cp_async_commit();  // empty groups keep the pending count
  };

  // Queries are the only thing that the warps share: they wait for them, not for the first tiles.
  load_decode_queries<T, policy>(p, unit, s.q);
  arch::cp_async_commit();
  for (int i = 0; i < policy.stages - 1; ++i) begin(first_round + i);
  arch::cp_async_wait<policy.stages - 1>();
  __syncthreads();

  AttentionRows<policy> rows;
  for (int round = first_round; round < end_round; ++round) {
    begin(round + policy.stages - 1);
    arch::cp_async_wait<policy.stages - 1>();
    __syncwarp();
    const auto& tile = ring.stages[(round - first_round) % policy.stages];
    AttentionScores<policy> scores = {};
#pragma unroll
    for (int step = 0; step < policy.dims / 16; ++step) {
      uint32_t a[1][4];
      load_queries<policy>(s.q, 0, 2 * step, a);
      multiply_by_keys<T, policy>(a, tile[0], 2 * step, scores);
    }
    const float factor = finish_decode_scores<T, policy>(p, unit, tiles, first_key(round), scores);
    update_softmax<policy>(scores, factor, rows);
    add_values<T, policy>(scores, tile[1], policy.keys, rows);
    __syncwarp();  // the stage is refilled
  }

  // Merge the warps' sums in the memory of their rings: nothing is in flight.
  __syncthreads();
  write_part<policy>(rows, s.parts[warp]);
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / 8;
  if (row >= DecodeRows(p).count) return;
  DecodeRow<policy.dims> merged;
  merged.merge(
      kDecodeWarps,
      [&](int of, int element) {
        return *reinterpret_cast<const float4*>(&s.parts[of].y[row][element]);
      },
      [&](int of) { return s.parts[of].row_max[row]; },
      [&](int of) { return s.parts[of].row_sum[row]; });
  if (params.num_parts == 1) return write_row<T>(p, unit, row, merged);
  const DecodePartPlace<policy.dims> place(params, blockIdx.x);
#pragma unroll
  for (int i = 0; i < policy.dims / 32; ++i) {
    const float* sums = merged.y[i];
    *place.sums(row, merged.first(i)) = make_float4(sums[0], sums[1], sums[2], sums[3]);
  }
  if (threadIdx.x % 8 == 0)
    place.row_max(row) = merged.row_max, place.row_sum(row) = merged.row_sum;
}

/// One block per unit.
template <class T, DecodeWidth width>
__global__ void __launch_bounds__(kDecodeThreads)
    flash_attention_decode_merge(const __grid_constant__ FlashAttentionDecodeParams params) {
  constexpr int kDims = decode_policy_of(width).dims;
  arch::follow_grid();
  const QueryBlock unit = decode_unit(params.attention, blockIdx.x);
  const int row = static_cast<int>(threadIdx.x) / 8;
  if (row >= DecodeRows(params.attention).count) return;
  const auto place = [&](int part) {
    return DecodePartPlace<kDims>(params, int64_t{blockIdx.x} * params.num_parts + part);
  };
  DecodeRow<kDims> merged;
  merged.merge(
      params.num_parts, [&](int part, int element) { return *place(part).sums(row, element); },
      [&](int part) { return place(part).row_max(row); },
      [&](int part) { return place(part).row_sum(row); });
  write_row<T>(params.attention, unit, row, merged);
}

template <class T, DecodeWidth width>
cudaError_t launch_decode_width(const FlashAttentionDecodeParams& params, cudaStream_t stream) {
  constexpr AttentionMmaPolicy policy = decode_policy_of(width);
  constexpr int kSharedBytes = sizeof(DecodeStorage<policy>);
  static_assert(kSharedBytes <= kLeastSharedBytes);
  const FlashAttentionParams& p = params.attention;
  const int64_t units = attention_units(p, p.num_members);
  const int64_t blocks = attention_decode_blocks(p, p.num_members, params.num_parts);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const auto kernel = flash_attention_decode<T, width>;
  cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  status = launch_kernel(kernel, static_cast<unsigned>(blocks), kDecodeThreads, kSharedBytes,
                         stream, params);
  if (status != cudaSuccess || params.num_parts == 1) return status;
  return launch_kernel(flash_attention_decode_merge<T, width>, static_cast<unsigned>(units),
                       kDecodeThreads, 0, stream, params);
}

template <class T>
cudaError_t launch_flash_attention_decode(FlashAttentionDecodeParams params, cudaStream_t stream) {
  using enum DecodeWidth;
  const FlashAttentionParams& p = params.attention;
  if (p.seq * (p.heads / p.kv_heads) > kDecodeRows) return cudaErrorInvalidValue;
  set_alignment(params.attention, sizeof(T));
  if (p.head_dim <= 32) return launch_decode_width<T, d32>(params, stream);
  if (p.head_dim <= 64) return launch_decode_width<T, d64>(params, stream);
  if (p.head_dim <= 128) return launch_decode_width<T, d128>(params, stream);
  if (p.head_dim <= 256) return launch_decode_width<T, d256>(params, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
