// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The order in which the blocks of flash_attention_wgmma.cuh, one a multiprocessor, take queries.
// They advance in strides, so each block's share is fixed before the launch.
//
// Order: groups of heads whose keys and values fit the L2 cache together; in a group the queries
// that see most keys first, so that concurrent blocks take equally long. For a causal problem
// that alone would be unbalanced: the first block takes the longest turn of every stride, and
// with few strides the device waits for it, for up to a third of the time. So a turn may be two
// blocks of queries of a head, the i-th from the back and the i-th from the front: then all turns
// take equally long. There are half as many of them, so with hardly more turns than
// multiprocessors single blocks of queries are better: the order with the lower estimated cost is
// chosen.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/flash_attention_params.hpp"

namespace wide::kernels {

struct AttentionOrder {
  uint32_t heads, heads_per_group, blocks_per_head;
  uint32_t blocks_per_turn;  ///< 1, or 2
  uint32_t count;            ///< of turns
};

/// Query blocks of a head: the `place`-th, counted from those that see most keys, and, where
/// `count` is 2, the `place`-th counted from the other end.
struct AttentionTurn {
  uint32_t head, place, count;
};

constexpr uint32_t attention_turns_per_head(const AttentionOrder& order) {
  return (order.blocks_per_head + order.blocks_per_turn - 1) / order.blocks_per_turn;
}

constexpr AttentionTurn attention_turn(const AttentionOrder& order, uint32_t index) {
  const uint32_t per_group = order.heads_per_group * attention_turns_per_head(order);
  const uint32_t first_head = index / per_group * order.heads_per_group;
  const uint32_t left = order.heads - first_head;
  const uint32_t heads = order.heads_per_group < left ? order.heads_per_group : left;
  const uint32_t place = index % per_group / heads;
  const bool is_middle = 2 * place + 1 == order.blocks_per_head;
  return {first_head + index % per_group % heads, place, is_middle ? 1 : order.blocks_per_turn};
}

/// The place of a turn's `i`-th block of queries.
constexpr uint32_t attention_place(const AttentionOrder& order, const AttentionTurn& turn,
                                   uint32_t i) {
  return i == 0 ? turn.place : order.blocks_per_head - 1 - turn.place;
}

/// The cost of a turn of a causal problem, in tenths of a tile of keys: its tiles, and about six
/// tenths for prologue and epilogue of each block of `queries`.
inline int64_t attention_turn_cost(const FlashAttentionParams& p, const AttentionOrder& order,
                                   const AttentionTurn& turn, int queries, int keys) {
  int64_t cost = 0;
  for (uint32_t i = 0; i < turn.count; ++i) {
    const int64_t from_front = order.blocks_per_head - attention_place(order, turn, i);
    const int64_t last_query = std::min<int64_t>(from_front * queries, p.seq);
    const int64_t seen = std::clamp<int64_t>(last_query + p.kv_seq - p.seq, 0, p.kv_seq);
    cost += 10 * ((seen + keys - 1) / keys) + 6;
  }
  return cost;
}

/// The approximate cost of the busiest block, from a sample of blocks.
inline int64_t attention_order_cost(const FlashAttentionParams& p, const AttentionOrder& order,
                                    uint32_t blocks, int queries, int keys) {
  int64_t most = 0;
  for (const uint32_t block : {0u, blocks / 2, blocks - 1}) {
    int64_t cost = 0;
    for (uint32_t index = block; index < order.count; index += blocks)
      cost += attention_turn_cost(p, order, attention_turn(order, index), queries, keys);
    most = std::max(most, cost);
  }
  return most;
}

/// Heads whose keys and values fill about half of the L2 cache, which they share with queries and
/// results; heads that share keys stay together.
inline uint32_t attention_heads_per_group(const FlashAttentionParams& p, uint32_t heads) {
  constexpr int64_t kBytes = 24 << 20;
  const int64_t of_head = std::max<int64_t>(4 * int64_t{p.kv_seq} * p.head_dim, 1);
  const int64_t groups = std::max<int64_t>(kBytes / of_head, 1);
  return static_cast<uint32_t>(std::min<int64_t>(groups * (p.heads / p.kv_heads), heads));
}

/// For `blocks` persistent blocks; `heads` of all members and batch rows have `blocks_per_head`
/// blocks of `queries`; tiles have `keys`. With a window, or without a mask, all turns are equal.
inline AttentionOrder attention_order(const FlashAttentionParams& p, uint32_t heads,
                                      uint32_t blocks_per_head, uint32_t blocks, int queries,
                                      int keys) {
  // From here on any order is fair, and adding up would take microseconds of every launch.
  constexpr uint32_t kManyStrides = 64;
  AttentionOrder one{heads, attention_heads_per_group(p, heads), blocks_per_head, 1,
                     heads * blocks_per_head};
  const bool is_alike = !p.is_causal || p.window > 0 || one.count / blocks >= kManyStrides;
  if (is_alike || one.count <= blocks) return one;
  AttentionOrder two = one;
  two.blocks_per_turn = 2;
  two.count = heads * attention_turns_per_head(two);
  return attention_order_cost(p, two, blocks, queries, keys) <
                 attention_order_cost(p, one, blocks, queries, keys)
             ? two
             : one;
}

}  // namespace wide::kernels
