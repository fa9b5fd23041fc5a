// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of this folder: which queries a block has and which keys those see, and the
// ring in which tiles of keys and of values alternate.
//
//   item    K0   V0   K1   V1   K2 ...       copies in flight: stages - 1
//           wait for the item, barrier, load the item stages - 1 further, use the item
//
// A tile row in shared memory is a padded head. Chunks of 16 bytes are permuted so that the same
// chunk of eight rows, and eight neighbouring chunks, are in different banks.
#pragma once

#include <cstdint>

#include "kernels/arch/math.cuh"
#include "kernels/arch/opaque.cuh"
#include "kernels/attention/flash_attention_blocks.hpp"
#include "kernels/attention/flash_attention_params.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/common/tile.cuh"

namespace wide::kernels {

/// Chunks that are permuted among each other. In rows of four (or twelve) chunks two rows fill all
/// banks once, so the permutation changes with every second row.
template <int chunks>
constexpr int kTurnChunks = chunks % 8 == 0 ? 8 : 4;

/// Where chunk `chunk` of row `row` starts in a tile whose rows are `chunks` long.
template <int chunks>
__device__ inline int head_offset(int row, int chunk) {
  static_assert(chunks % 4 == 0);
  const int turn = kTurnChunks<chunks> == 8 ? row & 7 : row >> 1 & 3;  // rows are not negative
  return (row * chunks + (chunk ^ turn)) * kChunkBytes;
}

/// The offset `chunk` chunks further, from that of the row's chunk 0 or 1; `chunk` is even and a
/// compile-time constant, so that all of a row's offsets are few registers and constants. Eight
/// rows further is always 8 * chunks * kChunkBytes further.
template <int chunks>
__device__ inline int advance_chunks(int offset, int chunk) {
  constexpr int kTurn = kTurnChunks<chunks>;
  return (offset ^ (chunk % kTurn * kChunkBytes)) + chunk / kTurn * kTurn * kChunkBytes;
}

/// head_offset() as a function object, for load_rows().
template <int chunks>
struct HeadPlace {
  __device__ int operator()(int row, int chunk) const { return head_offset<chunks>(row, chunk); }
};

/// Keys [first, last); empty where last <= first.
struct KeyRange {
  int first, last;
};

/// A block's queries: [first_query, first_query + num_queries) of one head.
struct QueryBlock {
  uint32_t member, batch_row, head, kv_head;
  int first_query, num_queries;
  int key_length;
  int first_position;  ///< of the head's first query among the keys; may be negative
};

__device__ inline int key_length_of(const FlashAttentionParams& p, const QueryBlock& block) {
  if (p.key_lengths == nullptr) return p.kv_seq;
  const int32_t length =
      p.key_lengths[block.member * p.key_lengths_member_stride + block.batch_row];
  return min(max(length, 0), p.kv_seq);
}

/// What a member's batch row decides.
__device__ inline void find_keys(const FlashAttentionParams& p, QueryBlock& block) {
  block.key_length = key_length_of(p, block);
  block.first_position = (p.aligns_to_lengths ? block.key_length : p.kv_seq) - p.seq;
}

/// A block of the `index`-th of all heads: a member's batch rows one after another, so that heads
/// that share their keys are neighbours. Its queries are not set.
__device__ inline QueryBlock locate_head(const FlashAttentionParams& p, uint32_t index) {
  QueryBlock block;
  const auto heads = static_cast<uint32_t>(p.heads), batch = static_cast<uint32_t>(p.batch);
  block.head = index % heads;
  index /= heads;
  block.batch_row = index % batch;
  block.member = index / batch;
  block.kv_head = block.head / static_cast<uint32_t>(p.heads / p.kv_heads);
  return block;
}

/// Assigns the head's `place`-th block of `queries`: where the problem is causal, blocks with most
/// keys come first, so that the last to finish are short.
__device__ inline void take_queries(const FlashAttentionParams& p, uint32_t blocks_per_head,
                                    uint32_t place, int queries, QueryBlock& block) {
  block.first_query = static_cast<int>(p.is_causal ? blocks_per_head - 1 - place : place) * queries;
  block.num_queries = min(p.seq - block.first_query, queries);
  find_keys(p, block);
}

/// Blocks of one head are adjacent, then the heads that share their keys.
__device__ inline QueryBlock locate_queries(const FlashAttentionParams& p, uint32_t blocks_per_head,
                                            int queries) {
  QueryBlock block = locate_head(p, blockIdx.x / blocks_per_head);
  take_queries(p, blocks_per_head, blockIdx.x % blocks_per_head, queries, block);
  return block;
}

/// A query's position among the keys.
__device__ inline int position_of(const QueryBlock& block, int query) {
  return query + block.first_position;
}

/// The range that contains what any of the queries [from, to] sees; for one query, exactly what it
/// sees.
__device__ inline KeyRange visible_keys(const FlashAttentionParams& p, const QueryBlock& block,
                                        int from, int to) {
  KeyRange range{0, block.key_length};
  if (p.is_causal) range.last = min(range.last, position_of(block, to) + 1);
  if (p.window > 0) {
    range.first = max(range.first, position_of(block, from) - p.window + 1);
    range.last = min(range.last, position_of(block, to) + p.window);
  }
  return range;
}

/// The tiles of `size` keys that some query of a block sees.
struct KeyTiles {
  KeyRange by_all;  ///< keys that every query sees
  int first, count;

  __device__ KeyTiles(const FlashAttentionParams& p, const QueryBlock& block, int size) {
    const int last_query = block.first_query + block.num_queries - 1;
    const KeyRange seen = visible_keys(p, block, block.first_query, last_query);
    by_all = {visible_keys(p, block, last_query, last_query).first,
              visible_keys(p, block, block.first_query, block.first_query).last};
    first = seen.first / size;
    count = seen.first < seen.last ? (seen.last - 1) / size + 1 - first : 0;
  }
  /// Whether some query does not see some of these keys.
  __device__ bool hides(int first_key, int end_key) const {
    return first_key < by_all.first || end_key > by_all.last;
  }
};

/// Within 2^-22 of 1, sufficient for a capped score.
__device__ inline float tanh_approximately(float x) {
  return 1.0f - __fdividef(2.0f, 1.0f + arch::exp2_approximately(2.0f * kLog2E * x));
}

/// A score that is more than scale q k, as a base-2 exponent, from the product of q and k.
__device__ inline float modified_score(const FlashAttentionParams& p, float slope, float product,
                                       int distance) {
  float score = p.scale * product;
  if (p.soft_cap > 0.0f) score = p.soft_cap * tanh_approximately(__fdividef(score, p.soft_cap));
  return kLog2E * (score - slope * static_cast<float>(abs(distance)));
}

__device__ inline float slope_of(const FlashAttentionParams& p, const QueryBlock& block) {
  if (p.slopes == nullptr) return 0.0f;
  return p.slopes[block.member * p.slopes_member_stride + block.head];
}

/// Whether scores need modified_score(). Otherwise one multiply-add turns them into exponents,
/// where the largest score has the largest product: scale is positive.
__device__ inline bool modifies_scores(const FlashAttentionParams& p) {
  return p.soft_cap > 0.0f || p.slopes != nullptr || p.bias != nullptr || !(p.scale > 0.0f);
}

/// The bias of a query's scores; of the last query for missing ones. Most calls have none: no
/// address is kept for it.
template <class T>
__device__ inline const T* bias_row(const FlashAttentionParams& p, const QueryBlock& block,
                                    int query) {
  const ScoreBiasStrides& strides = p.bias_strides;
  const auto again = [](uint32_t index) { return arch::opaque(static_cast<int>(index)); };
  return static_cast<const T*>(p.bias) + again(block.member) * strides.member +
         again(block.batch_row) * strides.batch + again(block.head) * strides.head +
         min(arch::opaque(query), p.seq - 1) * strides.query;
}

/// The bias of one key; of the last key for missing ones. Rounded towards zero, so that the
/// lowest number, which masks use to hide keys, stays finite: where nothing else is seen, it
/// counts.
template <class T>
__device__ inline float score_bias(const FlashAttentionParams& p, const T* row, int key) {
  return __fmul_rz(kLog2E, to_float(row[min(key, p.kv_seq - 1)]));
}

/// Where a query, or its result, begins.
__device__ inline int64_t query_element(const FlashAttentionParams& p, const QueryBlock& block,
                                        const RowStrides& strides, int query) {
  return (int64_t{block.batch_row} * p.seq + query) * strides.row + block.member * strides.member +
         int64_t{block.head} * p.head_dim;
}

/// Where a head's keys, or values, begin.
__device__ inline int64_t key_element(const FlashAttentionParams& p, const QueryBlock& block,
                                      const RowStrides& strides) {
  return int64_t{block.batch_row} * p.kv_seq * strides.row + block.member * strides.member +
         int64_t{block.kv_head} * p.head_dim;
}

/// Alternating tiles of `keys` keys and values, from the one that begins at `first_key`.
template <class T, int keys, int chunks, int stages, int threads>
class KeyRing {
 public:
  static constexpr int kTileBytes = keys * chunks * kChunkBytes;

  __device__ KeyRing(const FlashAttentionParams& p, const QueryBlock& block, int first_key,
                     int num_tiles, char* shared)
      : shared_(shared),
        first_key_(first_key),
        num_tiles_(num_tiles),
        key_length_(block.key_length),
        head_dim_(p.head_dim),
        keys_{static_cast<const T*>(p.k) + key_element(p, block, p.k_strides), p.k_strides.row, 0,
              p.k_is_aligned},
        values_{static_cast<const T*>(p.v) + key_element(p, block, p.v_strides), p.v_strides.row, 0,
                p.v_is_aligned} {}

  /// Starts the first items; this thread's earlier copies belong to the first of them.
  __device__ void start() {
#pragma unroll
    for (int item = 0; item < stages - 1; ++item) load(item % 2 == 1, item / 2, item);
  }

  /// The keys of tile `tile`, then its values: each waits for its item. The barrier also ensures
  /// that the item before it, whose stage is refilled next, is no longer read.
  __device__ const char* next_keys(int tile) {
    return next<0>(tile);
  }
  __device__ const char* next_values(int tile) {
    return next<1>(tile);
  }

 private:
  template <int item>  // of the tile's two
  __device__ const char* next(int tile) {
    constexpr int kAhead = item + stages - 1;
    arch::cp_async_wait<stages - 2>();
    __syncthreads();
    load(kAhead % 2 == 1, tile + kAhead / 2, stage_ == 0 ? stages - 1 : stage_ - 1);
    const char* arrived = shared_ + stage_ * kTileBytes;
    stage_ = stage_ == stages - 1 ? 0 : stage_ + 1;
    return arrived;
  }

  __device__ void load(bool is_values, int tile, int stage) {
    if (tile < num_tiles_) {
      const int key = first_key_ + tile * keys;
      Source<T> source = is_values ? values_ : keys_;
      source.base += key * source.row_stride;
      source.num_rows = key_length_ - key;
      load_rows<T, keys, chunks, threads, 1>(shared_ + stage * kTileBytes, source, 0, head_dim_,
                                             HeadPlace<chunks>{});
    }
    arch::cp_async_commit();  // empty groups keep the pending count
  }

  char* shared_;
  int first_key_, num_tiles_, key_length_, head_dim_;
  Source<T> keys_, values_;
  int stage_ = 0;
};

/// Sets which operands may be moved 16 bytes at a time: heads are contiguous, so they must be whole
/// chunks, too.
inline void set_alignment(FlashAttentionParams& p, int64_t element_bytes) {
  const int64_t vector = 16 / element_bytes;
  const auto is_fit = [&](const void* pointer, const RowStrides& strides) {
    return p.head_dim % vector == 0 &&
           is_aligned(pointer, strides.row, strides.member, vector, element_bytes);
  };
  p.q_is_aligned = is_fit(p.q, p.q_strides);
  p.k_is_aligned = is_fit(p.k, p.k_strides);
  p.v_is_aligned = is_fit(p.v, p.v_strides);
  p.y_is_aligned = is_fit(p.y, p.y_strides);
}

/// Launches kernel(params, blocks_per_head) in one dimension, a block per `queries` of a head.
template <class Kernel>
cudaError_t launch_query_blocks(Kernel* kernel, const FlashAttentionParams& p, int queries,
                                int threads, int shared_bytes, cudaStream_t stream) {
  const int64_t blocks = attention_query_blocks(p, p.num_members, queries);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const auto per_head = static_cast<uint32_t>((p.seq - 1) / queries + 1);
  if (const cudaError_t status = allow_shared_bytes(kernel, shared_bytes); status != cudaSuccess) {
    return status;
  }
  return launch_kernel(kernel, static_cast<unsigned>(blocks), threads,
                       static_cast<size_t>(shared_bytes), stream, p, per_head);
}

}  // namespace wide::kernels
