// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a warpgroup of flash_attention_wgmma.cuh does with its 64 queries, 16 per warp: products on
// the tensor cores, softmax on the threads, and the output.
#pragma once

#include "kernels/arch/barrier.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/wgmma.cuh"
#include "kernels/attention/flash_attention_wgmma.hpp"
#include "kernels/attention/flash_attention_wgmma_storage.cuh"

namespace wide::kernels {

template <AttentionWgmmaPolicy policy>
using AttentionPowers = uint32_t[policy.keys / 16][4];  // A's fragments

template <AttentionWgmmaPolicy policy>
struct AttentionSums {
  float y[policy.y_sums()];
  float row_max[2], row_sum[2];  // of row lane / 4 and the one 8 below, as in AttentionRows

  __device__ void clear() {
#pragma unroll
    for (float& sum : y) sum = 0.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row_max[half] = -std::numeric_limits<float>::infinity();
      row_sum[half] = 0.0f;
    }
  }
};

template <class T, AttentionWgmmaPolicy policy>
__device__ inline void begin_scores(const char* q, const char* k,
                                    float (&scores)[policy.keys / 2]) {
  const auto descriptor = [](const char* rows) {
    return arch::operand_descriptor(rows, 16, 8 * kAttentionRowBytes,
                                    arch::OperandSwizzle::bytes_128);
  };
  const uint64_t of_q = descriptor(q), of_k = descriptor(k);
  arch::wgmma_pin(scores);
  arch::wgmma_fence();
#pragma unroll
  for (int byte = 0; byte < policy.dims * 2; byte += kInstructionBytes) {
    const int panel = byte / kAttentionRowBytes, in_row = byte % kAttentionRowBytes;
    arch::wgmma<T>(
        scores,
        arch::advance_descriptor(of_q, panel * kAttentionBoxQueries * kAttentionRowBytes + in_row),
        arch::advance_descriptor(of_k, panel * policy.keys * kAttentionRowBytes + in_row),
        byte > 0);
  }
  arch::wgmma_commit();
}

/// After pin_operands(). By the manual the preceding fence of begin_scores() would suffice: ptxas
/// wants one between sums of different registers, and says so (C7519).
template <class T, AttentionWgmmaPolicy policy>
__device__ inline void begin_values(const AttentionPowers<policy>& powers, const char* v,
                                    float (&y)[policy.y_sums()]) {
  arch::wgmma_fence();
  const uint64_t of_v = arch::operand_descriptor(
      v, policy.keys * kAttentionRowBytes, 8 * kAttentionRowBytes, arch::OperandSwizzle::bytes_128);
#pragma unroll
  for (int i = 0; i < policy.keys / 16; ++i) {
    arch::wgmma<T, arch::Major::mn>(
        y, powers[i], arch::advance_descriptor(of_v, i * 16 * kAttentionRowBytes), true);
  }
  arch::wgmma_commit();
}

/// Ownership of begin_values()'s register operands changes here.
template <AttentionWgmmaPolicy policy>
__device__ inline void pin_operands(AttentionPowers<policy>& powers, float (&y)[policy.y_sums()]) {
  arch::wgmma_pin(y);
#pragma unroll
  for (auto& fragment : powers) arch::wgmma_pin(fragment);
}

/// Turns a tile's products of queries and keys into the input of softmax. Returns the factor that
/// turns them into base-2 exponents.
template <AttentionWgmmaPolicy policy>
__device__ inline float finish_scores(const FlashAttentionParams& p, const QueryBlock& block,
                                      const KeyTiles& tiles, int first_query, int first_key,
                                      AttentionScores<policy.rows()>& scores) {
  float factor = p.scale * kLog2E;
  const auto for_each = [&](const auto& change) {
    for_each_score<policy.rows()>(scores, first_query, first_key, policy.keys, change);
  };
  if (modifies_scores(p)) {
    factor = kLog2E;
    for_each([&](float& score, int, int) { score *= p.scale; });
    if (p.soft_cap > 0.0f) {
      const float inverse = 1.0f / p.soft_cap;
      for_each([&](float& score, int, int) {
        score = p.soft_cap * tanh_approximately(score * inverse);
      });
    }
    if (p.slopes != nullptr) {
      const float slope = slope_of(p, block);
      for_each([&](float& score, int query, int key) {
        score -= slope * static_cast<float>(abs(position_of(block, query) - key));
      });
    }
  }
  if (tiles.hides(first_key, first_key + policy.keys)) {
    for_each([&](float& score, int query, int key) {
      const KeyRange own = visible_keys(p, block, query, query);
      if (key < own.first || key >= own.last) score = -std::numeric_limits<float>::infinity();
    });
  }
  return factor;
}

/// Turns scores into powers relative to their row's largest; rescaling y by `rescale` is left to
/// the caller, which may not own y yet.
template <AttentionWgmmaPolicy policy>
__device__ inline void exponentiate(AttentionScores<policy.rows()>& scores, float factor,
                                    AttentionSums<policy>& sums, float (&rescale)[2]) {
  constexpr AttentionMmaPolicy rows = policy.rows();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float row_max =
        fmaxf(sums.row_max[half], largest_score<rows>(scores, 0, half, policy.keys) * factor);
    const float base = finite_max(row_max);
    rescale[half] = arch::exp2_approximately(sums.row_max[half] - base);
    sums.row_max[half] = row_max;
    const float row_sum = exponentiate_row<rows>(scores, 0, half, policy.keys, factor, base);
    sums.row_sum[half] = sums.row_sum[half] * rescale[half] + row_sum;
  }
}

template <class T, AttentionWgmmaPolicy policy>
__device__ inline void round_powers(const AttentionScores<policy.rows()>& scores,
                                    AttentionPowers<policy>& powers) {
#pragma unroll
  for (int i = 0; i < policy.keys / 16; ++i) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const float* pair = &scores[0][2 * i + part / 2][part % 2 * 2];
      powers[i][part] = pack_pair<T>(pair[0], pair[1]);
    }
  }
}

template <AttentionWgmmaPolicy policy>
__device__ inline void scale_rows(float (&y)[policy.y_sums()], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < policy.y_sums(); ++i) y[i] *= factor[i / 2 % 2];
}

/// Zeroes values past the key length, which may be anything: their powers are 0, but 0 times NaN is
/// not. By both warpgroups, before either multiplies by them.
template <AttentionWgmmaPolicy policy>
__device__ inline void zero_hidden_values(char* v, int first_hidden, int consumer) {
  constexpr int kRowPieces = kAttentionRowBytes / 16, kPanelPieces = policy.keys * kRowPieces;
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup + consumer * kWarpgroup;
#pragma unroll
  for (int panel = 0; panel < policy.panels(); ++panel) {
    auto* pieces = reinterpret_cast<uint4*>(v + panel * policy.keys * kAttentionRowBytes);
    for (int i = first_hidden * kRowPieces + thread; i < kPanelPieces;
         i += kConsumers * kWarpgroup) {
      pieces[i] = make_uint4(0, 0, 0, 0);
    }
  }
  arch::fence_proxy_async();
  arch::named_barrier_sync(1 + kConsumers, kConsumers * kWarpgroup);
}

/// Divides, rounds and stores the warpgroup's 64 queries, one box per panel.
template <class T, AttentionWgmmaPolicy policy>
__device__ inline void store_head(AttentionStorage<policy>& s,
                                  const FlashAttentionWgmmaParams& params, const QueryBlock& block,
                                  int consumer, AttentionSums<policy>& sums) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  float share[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float row_sum = sums.row_sum[half];
    row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 1);
    row_sum += __shfl_xor_sync(0xffffffffu, row_sum, 2);
    share[half] = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;  // a query that sees nothing: 0
  }
  scale_rows<policy>(sums.y, share);
  char* box = s.y(consumer);
  const int barrier = 1 + consumer;
  // The box is no longer read: by the previous block's stores, or as queries.
  if (policy.has_own_y && thread == 0) arch::wait_stores_read<0>();
  arch::named_barrier_sync(barrier, kWarpgroup);
#pragma unroll
  for (int panel = 0; panel < policy.panels(); ++panel) {
    write_box<T>(box + panel * kAttentionBoxQueries * kAttentionRowBytes, thread,
                 reinterpret_cast<const float(&)[kBlockSums]>(sums.y[panel * kBlockSums]));
  }
  arch::fence_proxy_async();
  arch::named_barrier_sync(barrier, kWarpgroup);
  if (thread != 0) return;
#pragma unroll
  for (int panel = 0; panel < policy.panels(); ++panel) {
    arch::store_tile(
        params.y, box + panel * kAttentionBoxQueries * kAttentionRowBytes, panel * kAttentionPanel,
        static_cast<int32_t>(block.head), static_cast<int32_t>(block.member),
        block.first_query + consumer * kAttentionBoxQueries, static_cast<int32_t>(block.batch_row));
  }
  arch::commit_stores();
  if (policy.has_own_y) return;
  arch::wait_stores_read<0>();
  arch::mbarrier_arrive(&s.q_empty[consumer]);
}

}  // namespace wide::kernels
