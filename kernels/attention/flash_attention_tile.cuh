// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of this folder share: which queries a block has and which keys those see, and
// the ring in which tiles of keys and of values take turns.
//
//   item    K0   V0   K1   V1   K2 ...       copies under way: stages - 1
//           wait for the item, barrier, begin the item stages - 1 further, use the item
//
// A tile row in shared memory is a padded head. Chunks of 16 bytes are permuted so that eight rows'
// same chunk, and eight neighbouring chunks, lie in different banks.
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

/// Chunks that are permuted among each other. Rows of four (or twelve): two rows fill all banks
/// once, so it is pairs of rows that differ.
template <int chunks>
constexpr int kTurnChunks = chunks % 8 == 0 ? 8 : 4;

/// Where chunk `chunk` of row `row` starts in a tile whose rows are `chunks` long.
template <int chunks>
__device__ inline int head_offset(int row, int chunk) {
  static_assert(chunks % 4 == 0);
  const int turn = kTurnChunks<chunks> == 8 ? row & 7 : row >> 1 & 3;  // rows are not below 0
  return (row * chunks + (chunk ^ turn)) * kChunkBytes;
}

/// The same of `chunk` chunks further, from the place of the row's chunk 0 or 1; `chunk` is even
/// and known when compiling, so that all of a row's places are few registers and constants. Eight
/// rows further is always 8 * chunks * kChunkBytes further.
template <int chunks>
__device__ inline int chunks_further(int offset, int chunk) {
  constexpr int kTurn = kTurnChunks<chunks>;
  return (offset ^ (chunk % kTurn * kChunkBytes)) + chunk / kTurn * kTurn * kChunkBytes;
}

/// head_offset() as a function object, for load_rows().
template <int chunks>
struct HeadPlace {
  __device__ int operator()(int row, int chunk) const { return head_offset<chunks>(row, chunk); }
};

/// Of keys, [first, last); empty where last <= first.
struct KeyRange {
  int first, last;
};

/// A block's queries: [first_query, first_query + num_queries) of one head.
struct QueryBlock {
  uint32_t member, batch_row, head, kv_head;
  int first_query, num_queries;
  int key_length;
};

__device__ inline int key_length_of(const FlashAttentionParams& p, const QueryBlock& block) {
  if (p.key_lengths == nullptr) return p.kv_seq;
  const int32_t length =
      p.key_lengths[block.member * p.key_lengths_member_stride + block.batch_row];
  return min(max(length, 0), p.kv_seq);
}

/// A block of the `index`-th of all heads: a member's batch rows' one after another, so that those
/// that share their keys are neighbours. Which queries is yet to be said.
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

/// Of a head's blocks of `queries`, the one that has its `place`-th turn: where the problem is
/// causal, blocks with most keys come first, so that the last to finish are short.
__device__ inline void take_queries(const FlashAttentionParams& p, uint32_t blocks_per_head,
                                    uint32_t place, int queries, QueryBlock& block) {
  block.first_query = static_cast<int>(p.is_causal ? blocks_per_head - 1 - place : place) * queries;
  block.num_queries = min(p.seq - block.first_query, queries);
  block.key_length = key_length_of(p, block);
}

/// Blocks of one head side by side, then the heads that share their keys.
__device__ inline QueryBlock locate_queries(const FlashAttentionParams& p, uint32_t blocks_per_head,
                                            int queries) {
  QueryBlock block = locate_head(p, blockIdx.x / blocks_per_head);
  take_queries(p, blocks_per_head, blockIdx.x % blocks_per_head, queries, block);
  return block;
}

/// Where a query stands among the keys.
__device__ inline int position_of(const FlashAttentionParams& p, int query) {
  return query + p.kv_seq - p.seq;
}

/// What any of the queries [from, to] sees lies in this range; for one query, it is all that it
/// sees.
__device__ inline KeyRange seen_keys(const FlashAttentionParams& p, const QueryBlock& block,
                                     int from, int to) {
  KeyRange range{0, block.key_length};
  if (p.is_causal) range.last = min(range.last, position_of(p, to) + 1);
  if (p.window > 0) {
    range.first = max(range.first, position_of(p, from) - p.window + 1);
    range.last = min(range.last, position_of(p, to) + p.window);
  }
  return range;
}

/// The tiles of `size` keys that some query of a block sees.
struct KeyTiles {
  KeyRange by_all;  ///< keys that every query sees
  int first, count;

  __device__ KeyTiles(const FlashAttentionParams& p, const QueryBlock& block, int size) {
    const int last_query = block.first_query + block.num_queries - 1;
    const KeyRange seen = seen_keys(p, block, block.first_query, last_query);
    by_all = {seen_keys(p, block, last_query, last_query).first,
              seen_keys(p, block, block.first_query, block.first_query).last};
    first = seen.first / size;
    count = seen.first < seen.last ? (seen.last - 1) / size + 1 - first : 0;
  }
  /// Whether some query does not see some of these keys.
  __device__ bool hides(int first_key, int end_key) const {
    return first_key < by_all.first || end_key > by_all.last;
  }
};

/// Within 2^-22 of 1, which is all that a capped score needs.
__device__ inline float tanh_approximately(float x) {
  return 1.0f - __fdividef(2.0f, 1.0f + arch::exp2_approximately(2.0f * kLog2E * x));
}

/// A score that is more than scale q k: its base-2 logarithm, from the product of q and k on.
__device__ inline float bend_score(const FlashAttentionParams& p, float slope, float product,
                                   int distance) {
  float score = p.scale * product;
  if (p.soft_cap > 0.0f) score = p.soft_cap * tanh_approximately(__fdividef(score, p.soft_cap));
  return kLog2E * (score - slope * static_cast<float>(abs(distance)));
}

__device__ inline float slope_of(const FlashAttentionParams& p, const QueryBlock& block) {
  if (p.slopes == nullptr) return 0.0f;
  return p.slopes[block.member * p.slopes_member_stride + block.head];
}

/// Whether scores need it. Else one multiply-add brings them into the exponent, where the largest
/// score has the largest product: scale is positive.
__device__ inline bool bends_scores(const FlashAttentionParams& p) {
  return p.soft_cap > 0.0f || p.slopes != nullptr || p.bias != nullptr || !(p.scale > 0.0f);
}

/// What is added to the scores of a query; of one that is not there, the last one's. Most calls
/// have none: no address is kept for one.
template <class T>
__device__ inline const T* bias_row(const FlashAttentionParams& p, const QueryBlock& block,
                                    int query) {
  const ScoreBiasStrides& strides = p.bias_strides;
  const auto again = [](uint32_t index) { return arch::opaque(static_cast<int>(index)); };
  return static_cast<const T*>(p.bias) + again(block.member) * strides.member +
         again(block.batch_row) * strides.batch + again(block.head) * strides.head +
         min(arch::opaque(query), p.seq - 1) * strides.query;
}

/// The same of one key; of keys that are not there, the last one's. Rounded towards zero, so that
/// the lowest number, by which masks hide keys, too, stays one: where nothing else is seen, it
/// counts.
template <class T>
__device__ inline float score_bias(const FlashAttentionParams& p, const T* row, int key) {
  return __fmul_rz(kLog2E, to_float(row[min(key, p.kv_seq - 1)]));
}

/// Where a query, or what is made of it, begins.
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

/// Tiles of `keys` keys and values, each in its turn, from the one that has key `first_key` on.
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

  /// Begins the first items; what this thread copied before goes with the first of them.
  __device__ void start() {
#pragma unroll
    for (int item = 0; item < stages - 1; ++item) load(item % 2 == 1, item / 2, item);
  }

  /// The keys of tile `tile`, then its values: each waits for its item. The barrier also says that
  /// everybody has finished with the item before it, whose place is filled next.
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
    arch::cp_async_commit();  // empty groups keep the count of pending ones
  }

  char* shared_;
  int first_key_, num_tiles_, key_length_, head_dim_;
  Source<T> keys_, values_;
  int stage_ = 0;
};

/// Fills in which operands may be moved 16 bytes at a time: heads lie side by side, so they must be
/// whole chunks, too.
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

/// Starts kernel(params, blocks_per_head), one block for so many queries of a head, in one line.
template <class Kernel>
cudaError_t launch_query_blocks(Kernel* kernel, const FlashAttentionParams& p, int queries,
                                int threads, int shared_bytes, cudaStream_t stream) {
  const int64_t blocks = attention_query_blocks(p, p.num_members, queries);
  if (blocks > kMostBlocks) return cudaErrorInvalidConfiguration;
  const auto per_head = static_cast<uint32_t>((p.seq - 1) / queries + 1);
  if (const cudaError_t status = allow_shared_bytes(kernel, shared_bytes); status != cudaSuccess) {
    return status;
  }
  return launch_kernel(kernel, static_cast<unsigned>(blocks), threads,
                       static_cast<size_t>(shared_bytes), stream, p, per_head);
}

}  // namespace wide::kernels
