// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention on Hopper's warpgroup products, fp16 and bf16, sums in fp32: computes the same as
// flash_attention_mma.cuh, with the features of compute capability 9.0.
//
// Plan: persistent, one block a multiprocessor, which takes blocks of 128 queries of all heads of
// all members. One thread of the first warpgroup fills two rings, of tiles of keys and of values,
// by bulk tensor copies; two warpgroups have 64 queries each, in shared memory, and visit every
// tile:
//
//   s' = q k'^T     both operands in shared memory
//   y += p v        p in registers: a lane's accumulators of s are its A fragment; v has its
//                   elements contiguous, as B may
//   p  = 2^(s' c - m)  on the threads, while y += p v of the previous tile is in flight
//
// so that products of one tile hide the powers of the next. The two warpgroups also alternate in
// issuing products: while one computes powers, the tensor cores multiply for the other.
//
//   warpgroup 1   s1, y0 begin | powers of 1     | s2, y1 begin | powers of 2 ...
//   warpgroup 2   ...powers of 0 | s1, y0 begin | powers of 1     | s2, y1 begin ...
//
// Tiles run from last to first: those that hide keys from some query come first, and
// arbitrary data past a key length is only in the first tile, whose values are overwritten
// with zeros there. The copies zero-fill what is past the last key or the head's last
// element.
//
// One tensor map {element, head, member, position, batch row} of each operand serves all members.
// Assignment of queries to blocks: flash_attention_wgmma_order.hpp.
// Source: Shah et al., "FlashAttention-3", 2024, arXiv:2407.08608, sections 3.1 and 3.2.
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/arch/warp.cuh"
#include "kernels/attention/flash_attention_wgmma_rows.cuh"

namespace wide::kernels {

// ---- the producer: one thread

/// Rows of a head from `position` on, panel by panel.
template <AttentionWgmmaPolicy policy>
__device__ inline void load_head(char* tile, const CUtensorMap& map, arch::Mbarrier* full, int rows,
                                 uint32_t head, uint32_t member, int position, uint32_t batch_row) {
  arch::mbarrier_arrive_expect_bytes(full, static_cast<uint32_t>(policy.tile_bytes(rows)));
#pragma unroll
  for (int panel = 0; panel < policy.panels(); ++panel) {
    arch::load_tile(tile + panel * rows * kAttentionRowBytes, map, full, panel * kAttentionPanel,
                    static_cast<int32_t>(head), static_cast<int32_t>(member), position,
                    static_cast<int32_t>(batch_row));
  }
}

template <AttentionWgmmaPolicy policy>
__device__ void produce_heads(AttentionStorage<policy>& s, const FlashAttentionWgmmaParams& params,
                              const AttentionOrder& order) {
  const FlashAttentionParams& p = params.attention;
  arch::wait_for_grid();
  Ring<policy.stages> k(0), v(0);
  uint32_t q_parity = 1;  // the first time no release is needed
  for_queries(p, order, [&](const QueryBlock& block) {
    const KeyTiles tiles(p, block, policy.keys);
    const auto load = [&](char* tile, const CUtensorMap& map, arch::Mbarrier* full, bool is_shared,
                          int position) {
      load_head<policy>(tile, map, full, policy.keys, block.kv_head, is_shared ? 0 : block.member,
                        position, block.batch_row);
    };
    // In the order of use: a tile's keys before the values of the previous one.
    for (int i = 0; i <= tiles.count; ++i) {
      const int first_key = (tiles.first + tiles.count - 1 - i) * policy.keys;
      if (i < tiles.count) {
        arch::mbarrier_wait(&s.k_empty[k.stage], k.parity ^ 1);
        load(s.k[k.stage], params.k, &s.k_full[k.stage], params.k_is_shared, first_key);
        k.advance();
      }
      for (int c = 0; i == 0 && c < kConsumers; ++c) {
        arch::mbarrier_wait(&s.q_empty[c], q_parity);
        load_head<policy>(s.q[c], params.q, &s.q_full[c], kAttentionBoxQueries, block.head,
                          params.q_is_shared ? 0 : block.member,
                          block.first_query + c * kAttentionBoxQueries, block.batch_row);
      }
      if (i > 0) {
        arch::mbarrier_wait(&s.v_empty[v.stage], v.parity ^ 1);
        load(s.v[v.stage], params.v, &s.v_full[v.stage], params.v_is_shared,
             first_key + policy.keys);
        v.advance();
      }
    }
    q_parity ^= 1;
  });
  arch::launch_dependents();
}

// ---- the consumers

/// A consumer's positions in the rings.
template <AttentionWgmmaPolicy policy>
struct AttentionPlaces {
  Ring<policy.stages> k{0}, v{0};
  uint32_t q_parity = 0, turn_parity;
};

template <class T, AttentionWgmmaPolicy policy>
__device__ inline void attend(AttentionStorage<policy>& s, const FlashAttentionParams& p,
                              const QueryBlock& block, int consumer, AttentionPlaces<policy>& at,
                              AttentionSums<policy>& sums) {
  const bool is_first_lane = threadIdx.x % 32 == 0;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const int first_query = block.first_query + consumer * kAttentionBoxQueries + 16 * warp;
  const KeyTiles tiles(p, block, policy.keys);
  const char* q = s.q[consumer];
  AttentionScores<policy.rows()> scores;
  auto& products = reinterpret_cast<float(&)[policy.keys / 2]>(scores);
  AttentionPowers<policy> powers;
  float rescale[2];
  const auto release_keys = [&](int tile) {
    if (is_first_lane) arch::mbarrier_arrive(&s.k_empty[at.k.stage]);
    at.k.advance();
    if (policy.has_own_y && tile == 0 && is_first_lane) {
      arch::mbarrier_arrive(&s.q_empty[consumer]);
    }
  };
  const auto update_softmax = [&](int tile) {
    const int first_key = (tiles.first + tile) * policy.keys;
    const float factor = finish_scores<policy>(p, block, tiles, first_query, first_key, scores);
    exponentiate<policy>(scores, factor, sums, rescale);
  };

  arch::mbarrier_wait(&s.q_full[consumer], at.q_parity);
  at.q_parity ^= 1;
  if (tiles.count == 0) {  // no query sees anything
    if (policy.has_own_y && is_first_lane) arch::mbarrier_arrive(&s.q_empty[consumer]);
    return;
  }
  int tile = tiles.count - 1;
  arch::mbarrier_wait(&s.k_full[at.k.stage], at.k.parity);
  begin_scores<T, policy>(q, s.k[at.k.stage], products);
  arch::wgmma_wait<0>();
  arch::wgmma_pin(products);
  release_keys(tile);
  update_softmax(tile);
  round_powers<T, policy>(scores, powers);
  const int first_hidden = block.key_length - (tiles.first + tile) * policy.keys;
  if (first_hidden < min(p.kv_seq - (tiles.first + tile) * policy.keys, policy.keys)) {
    arch::mbarrier_wait(&s.v_full[at.v.stage], at.v.parity);
    zero_hidden_values<policy>(s.v[at.v.stage], first_hidden, consumer);
  }
  if (tile > 0) arch::mbarrier_wait(&s.k_full[at.k.stage], at.k.parity);
  while (--tile >= 0) {
    arch::mbarrier_wait(&s.turn[consumer], at.turn_parity);
    at.turn_parity ^= 1;
    pin_operands<policy>(powers, sums.y);
    begin_scores<T, policy>(q, s.k[at.k.stage], products);
    arch::mbarrier_wait(&s.v_full[at.v.stage], at.v.parity);
    begin_values<T, policy>(powers, s.v[at.v.stage], sums.y);
    if (is_first_lane) arch::mbarrier_arrive(&s.turn[1 - consumer]);
    arch::wgmma_wait<1>();
    arch::wgmma_pin(products);
    release_keys(tile);
    update_softmax(tile);
    arch::wgmma_pin(products);
    // Also keeps ptxas from waiting for the values before the powers are computed: it hoists waits
    // up to a branch.
    if (tile > 0) arch::mbarrier_wait(&s.k_full[at.k.stage], at.k.parity);
    arch::wgmma_wait<0>();
    pin_operands<policy>(powers, sums.y);
    if (is_first_lane) arch::mbarrier_arrive(&s.v_empty[at.v.stage]);
    at.v.advance();
    scale_rows<policy>(sums.y, rescale);
    round_powers<T, policy>(scores, powers);
  }
  arch::mbarrier_wait(&s.v_full[at.v.stage], at.v.parity);
  pin_operands<policy>(powers, sums.y);
  begin_values<T, policy>(powers, s.v[at.v.stage], sums.y);
  arch::wgmma_wait<0>();
  pin_operands<policy>(powers, sums.y);
  if (is_first_lane) arch::mbarrier_arrive(&s.v_empty[at.v.stage]);
  at.v.advance();
}

template <class T, AttentionWgmmaPolicy policy>
__device__ void consume_heads(AttentionStorage<policy>& s, const FlashAttentionWgmmaParams& params,
                              const AttentionOrder& order, int consumer) {
  const FlashAttentionParams& p = params.attention;
  // The very first turn needs no arrival.
  AttentionPlaces<policy> at{.turn_parity = consumer == 0 ? 1u : 0u};
  AttentionSums<policy> sums;
  arch::wait_for_grid();  // before key lengths are read and y is written
  for_queries(p, order, [&](const QueryBlock& block) {
    sums.clear();
    attend<T, policy>(s, p, block, consumer, at, sums);
    store_head<T, policy>(s, params, block, consumer, sums);
  });
  if (policy.has_own_y && threadIdx.x % kWarpgroup == 0) arch::wait_stores_read<0>();
}

template <class T, HeadWidth width>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    flash_attention_wgmma(const __grid_constant__ FlashAttentionWgmmaParams params,
                          const __grid_constant__ AttentionOrder order) {
  if constexpr (arch::kHasSm90a) {
    constexpr AttentionWgmmaPolicy policy = attention_wgmma_policy(width);
    extern __shared__ __align__(1024) char shared[];
    auto& s = *reinterpret_cast<AttentionStorage<policy>*>(shared);
    if (threadIdx.x == 0) {
      for (const CUtensorMap* map : {&params.q, &params.k, &params.v, &params.y}) {
        arch::prefetch_tensor_map(*map);
      }
      prepare_barriers(s);
    }
    __syncthreads();
    const int warpgroup = arch::same_in_warp(static_cast<int>(threadIdx.x) / kWarpgroup);
    if (warpgroup == 0) {
      arch::shrink_registers<kProducerRegisters>();
      if (threadIdx.x < 32 && arch::elect_one()) produce_heads<policy>(s, params, order);
    } else {
      arch::grow_registers<kConsumerRegisters>();
      consume_heads<T, policy>(s, params, order, warpgroup - 1);
    }
  } else {
    __trap();
  }
}

template <class T, HeadWidth width>
cudaError_t launch_wgmma_width(const FlashAttentionWgmmaParams& params, cudaStream_t stream) {
  constexpr int kSharedBytes = sizeof(AttentionStorage<attention_wgmma_policy(width)>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 has");
  static_assert(kAttentionBlock == kWgmmaQueries);
  const FlashAttentionParams& p = params.attention;
  const int64_t per_head = (p.seq - 1) / kAttentionBlock + 1;
  const int64_t count = attention_query_blocks(p, p.num_members, kAttentionBlock);
  if (count > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const auto heads = static_cast<uint32_t>(count / per_head);
  const AttentionOrder order = attention_order(p, heads, static_cast<uint32_t>(per_head),
                                               static_cast<uint32_t>(params.num_multiprocessors),
                                               kAttentionBlock, attention_wgmma_policy(width).keys);
  const auto kernel = flash_attention_wgmma<T, width>;
  const cudaError_t status = allow_shared_bytes(kernel, kSharedBytes);
  if (status != cudaSuccess) return status;
  const uint32_t blocks = std::min(order.count, static_cast<uint32_t>(params.num_multiprocessors));
  return launch_kernel(kernel, blocks, kWgmmaThreads, kSharedBytes, stream, params, order);
}

template <class T>
cudaError_t launch_flash_attention_wgmma_type(const FlashAttentionWgmmaParams& params,
                                              cudaStream_t stream) {
  const int head_dim = params.attention.head_dim;
  if (head_dim <= 64) return launch_wgmma_width<T, HeadWidth::d64>(params, stream);
  if (head_dim <= 96) return launch_wgmma_width<T, HeadWidth::d96>(params, stream);
  if (head_dim <= 128) return launch_wgmma_width<T, HeadWidth::d128>(params, stream);
  if (head_dim <= 192) return launch_wgmma_width<T, HeadWidth::d192>(params, stream);
  if (head_dim <= 256) return launch_wgmma_width<T, HeadWidth::d256>(params, stream);
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
