// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which queries fall to which multiprocessor: everything once, and nobody waits for one of them.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kernels/attention/flash_attention_wgmma_order.hpp"

namespace wide::test {

namespace {

using namespace kernels;

constexpr int kQueries = 128, kKeys = 128;
constexpr uint32_t kBlocks = 132;

struct Shape {
  int32_t seq, head_dim;
  uint32_t heads;
};

FlashAttentionParams params_of(const Shape& shape, bool is_causal = true) {
  FlashAttentionParams p{};
  p.num_members = 1;
  p.batch = 1;
  p.heads = p.kv_heads = shape.heads;
  p.seq = p.kv_seq = shape.seq;
  p.head_dim = shape.head_dim;
  p.is_causal = is_causal;
  return p;
}

uint32_t blocks_of(const Shape& shape) {
  return static_cast<uint32_t>((shape.seq - 1) / kQueries + 1);
}

AttentionOrder order_of(const Shape& shape, bool is_causal = true) {
  return attention_order(params_of(shape, is_causal), shape.heads, blocks_of(shape), kBlocks,
                         kQueries, kKeys);
}

AttentionOrder with_turns_of(const Shape& shape, uint32_t blocks) {
  AttentionOrder order = order_of(shape);
  order.blocks_per_turn = blocks;
  order.count = order.heads * attention_turns_per_head(order);
  return order;
}
AttentionOrder one_by_one(const Shape& shape) {
  return with_turns_of(shape, 1);
}
AttentionOrder in_pairs(const Shape& shape) {
  return with_turns_of(shape, 2);
}

/// Mean over greatest of what falls to the multiprocessors.
double share_at_work(const Shape& shape, const AttentionOrder& order) {
  const FlashAttentionParams p = params_of(shape);
  std::vector<int64_t> costs(kBlocks);
  int64_t sum = 0;
  for (uint32_t index = 0; index < order.count; ++index) {
    const AttentionTurn turn = attention_turn(order, index);
    const int64_t cost = attention_turn_cost(p, order, turn, kQueries, kKeys);
    costs[index % kBlocks] += cost;
    sum += cost;
  }
  return static_cast<double>(sum) / kBlocks /
         static_cast<double>(*std::max_element(costs.begin(), costs.end()));
}

bool takes_all_once(const AttentionOrder& order) {
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (uint32_t index = 0; index < order.count; ++index) {
    const AttentionTurn turn = attention_turn(order, index);
    for (uint32_t i = 0; i < turn.count; ++i) {
      const uint32_t place = attention_place(order, turn, i);
      if (turn.head >= order.heads || place >= order.blocks_per_head) return false;
      if (!taken.insert({turn.head, place}).second) return false;
    }
  }
  return taken.size() == size_t{order.heads} * order.blocks_per_head;
}

}  // namespace

TEST_CASE("flash_attention: every block of queries has one turn, in either order") {
  for (const uint32_t heads : {1u, 7u, 32u, 100u, 131u, 300u}) {
    for (const int32_t seq : {1, 128, 129, 384, 500, 640, 2048}) {
      for (const int32_t head_dim : {64, 128, 256}) {
        const Shape shape{seq, head_dim, heads};
        INFO(heads << " heads of " << seq << " queries of " << head_dim);
        CHECK(takes_all_once(order_of(shape)));
        CHECK(takes_all_once(in_pairs(shape)));
      }
    }
  }
}

TEST_CASE("flash_attention: causal problems leave hardly a multiprocessor waiting") {
  const Shape shapes[]{{512, 128, 256}, {1024, 128, 128}, {2048, 128, 64}, {2048, 64, 16},
                       {4096, 128, 16}, {4096, 128, 32},  {8192, 128, 32}, {8192, 64, 16}};
  for (const Shape& shape : shapes) {
    INFO(shape.heads << " heads of " << shape.seq << " queries of " << shape.head_dim);
    CHECK(share_at_work(shape, order_of(shape)) > 0.95);
    CHECK(share_at_work(shape, one_by_one(shape)) < 0.85);
  }
}

TEST_CASE("flash_attention: the order that is taken is the better one, or nearly") {
  for (const int32_t head_dim : {64, 128}) {
    for (const int32_t seq : {128, 256, 512, 640, 1024, 2048, 4096}) {
      for (const uint32_t heads : {4u, 16u, 33u, 64u, 100u, 192u, 300u}) {
        const Shape shape{seq, head_dim, heads};
        const double best = std::max(share_at_work(shape, one_by_one(shape)),
                                     share_at_work(shape, in_pairs(shape)));
        INFO(heads << " heads of " << seq << " queries of " << head_dim);
        CHECK(share_at_work(shape, order_of(shape)) > 0.92 * best);
      }
    }
  }
}

TEST_CASE("flash_attention: what is alike long needs no pairs") {
  CHECK(order_of({4096, 128, 32}, false).blocks_per_turn == 1);
  CHECK(order_of({4096, 128, 32}).blocks_per_turn == 2);
  CHECK(order_of({512, 128, 16}).blocks_per_turn == 1);  // fewer than multiprocessors
  FlashAttentionParams p = params_of({4096, 128, 32});
  p.window = 512;
  CHECK(attention_order(p, 32, 32, kBlocks, kQueries, kKeys).blocks_per_turn == 1);
}

}  // namespace wide::test
