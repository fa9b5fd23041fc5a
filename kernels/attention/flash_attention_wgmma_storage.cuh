// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The shared memory of a block of flash_attention_wgmma.cuh, and the queries that it takes.
#pragma once

#include "kernels/arch/fence.cuh"
#include "kernels/arch/mbarrier.cuh"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_fragments.cuh"
#include "kernels/attention/flash_attention_wgmma_order.hpp"
#include "kernels/attention/flash_attention_wgmma_tile.hpp"
#include "kernels/common/warpgroup.cuh"

namespace wide::kernels {

constexpr int kAttentionWarps = kWarpgroup / 32;
constexpr int kAttentionBlock = kConsumers * kAttentionBoxQueries;  // queries
constexpr int kAttentionRowBytes = kAttentionPanel * 2;
static_assert(kAttentionBoxQueries == kBlockM && kAttentionPanel == kBlockN);

struct AttentionWgmmaPolicy {
  int dims;        // of a padded head for scores; shared memory, values and y: whole panels
  int keys;        // of a tile
  int stages;      // tiles of keys in shared memory, and of values
  bool has_own_y;  // otherwise y uses its queries' memory: the next ones come later

  constexpr int panels() const { return (dims + kAttentionPanel - 1) / kAttentionPanel; }
  /// Per thread: n of a product with values is whole panels, as the canonical layouts of operands
  /// that are not K-major have m or n in units of the swizzle's 64 elements.
  constexpr int y_sums() const { return panels() * kAttentionPanel / 2; }
  constexpr int tile_bytes(int rows) const { return panels() * rows * kAttentionRowBytes; }
  /// The warp's part as a policy of flash_attention_fragments.cuh.
  constexpr AttentionMmaPolicy rows() const { return {dims, keys, 16, 0, 1}; }
};

constexpr AttentionWgmmaPolicy attention_wgmma_policy(HeadWidth width) {
  switch (width) {
    case HeadWidth::d64:  // 160 KiB
      return {64, attention_wgmma_keys(64), 4, true};
    case HeadWidth::d96:  // 192 KiB, as 128
      return {96, attention_wgmma_keys(96), 2, true};
    case HeadWidth::d128:  // 192 KiB
      return {128, attention_wgmma_keys(128), 2, true};
    case HeadWidth::d192:  // 192 KiB
      return {192, attention_wgmma_keys(192), 2, true};
    case HeadWidth::d256:  // 192 KiB
      return {256, attention_wgmma_keys(256), 2, false};
    default:
      return {};
  }
}

template <AttentionWgmmaPolicy policy>
struct alignas(1024) AttentionStorage {
  static constexpr int kQueryBytes = policy.tile_bytes(kAttentionBoxQueries);
  char q[kConsumers][kQueryBytes];
  char k[policy.stages][policy.tile_bytes(policy.keys)];
  char v[policy.stages][policy.tile_bytes(policy.keys)];
  char own_y[policy.has_own_y ? kConsumers : 1][policy.has_own_y ? kQueryBytes : 16];
  arch::Mbarrier q_full[kConsumers], q_empty[kConsumers];
  arch::Mbarrier k_full[policy.stages], k_empty[policy.stages];
  arch::Mbarrier v_full[policy.stages], v_empty[policy.stages];
  arch::Mbarrier turn[kConsumers];

  __device__ char* y(int consumer) { return policy.has_own_y ? own_y[consumer] : q[consumer]; }
};

/// Calls f(block) for each block of queries of this thread block, in order.
template <class Function>
__device__ inline void for_queries(const FlashAttentionParams& p, const AttentionOrder& order,
                                   const Function& f) {
  for (uint32_t index = blockIdx.x; index < order.count; index += gridDim.x) {
    const AttentionTurn turn = attention_turn(order, index);
    QueryBlock block = locate_head(p, turn.head);
    for (uint32_t i = 0; i < turn.count; ++i) {
      take_queries(p, order.blocks_per_head, attention_place(order, turn, i), kAttentionBlock,
                   block);
      f(block);
    }
  }
}

template <AttentionWgmmaPolicy policy>
__device__ inline void prepare_barriers(AttentionStorage<policy>& s) {
  constexpr int kGivers = kAttentionWarps * kConsumers;
  for (int stage = 0; stage < policy.stages; ++stage) {
    arch::mbarrier_init(&s.k_full[stage], 1);
    arch::mbarrier_init(&s.v_full[stage], 1);
    arch::mbarrier_init(&s.k_empty[stage], kGivers);
    arch::mbarrier_init(&s.v_empty[stage], kGivers);
  }
  for (int c = 0; c < kConsumers; ++c) {
    arch::mbarrier_init(&s.q_full[c], 1);
    arch::mbarrier_init(&s.q_empty[c], policy.has_own_y ? kAttentionWarps : 1);
    arch::mbarrier_init(&s.turn[c], kAttentionWarps);
  }
  arch::fence_mbarrier_init();
}

}  // namespace wide::kernels
