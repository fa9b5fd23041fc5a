// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Two functions, compiled for each instruction set by being inlined into functions of that target.
// Both are matrix products whose tiles stay in registers.
#include "host/attention/flash_attention_cpu_block.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE_HAS_X86_TARGETS 1
#else
#define WIDE_HAS_X86_TARGETS 0
#endif

namespace wide::cpu {

namespace {

using Eight [[gnu::vector_size(32)]] = float;
using Sixteen [[gnu::vector_size(64)]] = float;
using EightBits [[gnu::vector_size(32)]] = uint32_t;

/// Eight or sixteen floats in memory. Copied as such: for a memcpy of several, g++ emits stores of
/// another width than the loads that follow, which then wait for memory each time.
using EightThere [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = float;
using SixteenThere [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]] = float;

[[gnu::always_inline]] inline EightThere& eight_at(float* there) {
  return *reinterpret_cast<EightThere*>(there);
}

/// The widest vectors of an instruction set, and rows of a tile: as many as its registers hold.
struct Narrow {
  using Vector = Eight;
  using There = EightThere;
  static constexpr int kWidth = 8, kRows = 4;
};
struct Broad {
  using Vector = Sixteen;
  using There = SixteenThere;
  static constexpr int kWidth = 16, kRows = 8;
};

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// x = 2^x for x <= 0; 0 below the normal numbers; NaN stays NaN. Taylor's series over
/// [-1/2, 1/2]: its remainder, (ln 2 / 2)^8 / 8!, is 5e-9. By reference: vectors of other targets
/// cannot be passed otherwise.
[[gnu::always_inline]] inline void raise_two_to(Eight& x) {
  const Eight least = Eight{} - 126.0f;
  const Eight magic = Eight{} + 0x1.8p23f;  // added, leaves the nearest integer in the last bits
  const Eight clamped = x < least ? least : x;
  const Eight shifted = clamped + magic;
  const Eight f = clamped - (shifted - magic);
  Eight sum = 1.5252734e-5f * f + 1.5403530e-4f;
  sum = sum * f + 1.3333558e-3f;
  sum = sum * f + 9.6181291e-3f;
  sum = sum * f + 5.5504109e-2f;
  sum = sum * f + 2.4022651e-1f;
  sum = sum * f + 6.9314718e-1f;
  sum = sum * f + 1.0f;
  const EightBits exponent = (reinterpret_cast<EightBits>(shifted) << 23) + 0x3f800000u;
  x = x < least ? Eight{} : sum * reinterpret_cast<Eight>(exponent);
}

/// Turns scores into powers relative to the row's largest; scales earlier sums down if it grew.
[[gnu::always_inline]] inline void weigh(AttentionState& state, const AttentionKeys& block, int r) {
  constexpr int kVectors = kAttentionKeys / 8;
  std::fill(block.scores[r] + block.keys, block.scores[r] + kAttentionKeys, kNone);
  float* scores = block.scores[r];
  Eight lanes = eight_at(scores);
  for (int v = 1; v < kVectors; ++v) {
    const Eight vector = eight_at(scores + 8 * v);
    lanes = vector > lanes ? vector : lanes;
  }
  float most = state.most[r];
  for (int l = 0; l < 8; ++l) most = lanes[l] > most ? lanes[l] : most;
  const float base = most == kNone ? 0.0f : most;  // nothing is seen yet: every power is 0
  Eight shrink = Eight{} + (state.most[r] - base);
  raise_two_to(shrink);
  Eight sums = {};
  for (int v = 0; v < kVectors; ++v) {
    Eight vector = eight_at(scores + 8 * v) - base;
    raise_two_to(vector);
    sums += vector;
    eight_at(scores + 8 * v) = vector;
  }
  float total = 0;
  for (int l = 0; l < 8; ++l) total += sums[l];
  state.total[r] = state.total[r] * shrink[0] + total;
  if (shrink[0] != 1.0f) {
    for (int d = 0; d < block.dims; ++d) state.sums[r][d] *= shrink[0];
  }
  state.most[r] = most;
}

/// sums[r][c] += sum_k left[r][k] * right[k][c], in the order of k. Rows are done kRows at a time,
/// `columns` is a multiple of 32.
template <class Set, int left_stride, int stride>
[[gnu::always_inline]] inline void add_product(const float (*left)[left_stride],
                                               const float (*right)[stride], float (*sums)[stride],
                                               int rows, int depth, int columns) {
  using Vector = typename Set::Vector;
  using There = typename Set::There;
  constexpr int kRows = Set::kRows, kWidth = Set::kWidth;
  for (int c = 0; c < columns; c += 2 * kWidth) {
    for (int first = 0; first < rows; first += kRows) {
      Vector tile[kRows][2];
      for (int r = 0; r < kRows; ++r) {
        tile[r][0] = *reinterpret_cast<const There*>(sums[first + r] + c);
        tile[r][1] = *reinterpret_cast<const There*>(sums[first + r] + c + kWidth);
      }
      for (int k = 0; k < depth; ++k) {
        const Vector low = *reinterpret_cast<const There*>(right[k] + c);
        const Vector high = *reinterpret_cast<const There*>(right[k] + c + kWidth);
        for (int r = 0; r < kRows; ++r) {
          const float factor = left[first + r][k];
          tile[r][0] += factor * low;
          tile[r][1] += factor * high;
        }
      }
      for (int r = 0; r < kRows; ++r) {
        *reinterpret_cast<There*>(sums[first + r] + c) = tile[r][0];
        *reinterpret_cast<There*>(sums[first + r] + c + kWidth) = tile[r][1];
      }
    }
  }
}

template <class Set>
[[gnu::always_inline]] inline void score(const AttentionScores& b) {
  for (int r = 0; r < kAttentionQueries; ++r) std::fill_n(b.scores[r], kAttentionKeys, 0.0f);
  add_product<Set>(b.queries, b.keys, b.scores, b.num_queries, b.dims, kAttentionKeys);
}

template <class Set>
[[gnu::always_inline]] inline void absorb(AttentionState& state, const AttentionKeys& block) {
  for (int r = 0; r < block.queries; ++r) weigh(state, block, r);
  const float(*weights)[kAttentionKeys] = block.scores;
  add_product<Set>(weights, block.values, state.sums, block.queries, block.keys, block.dims);
}

struct Kernels {
  void (*score)(const AttentionScores&);
  void (*absorb)(AttentionState&, const AttentionKeys&);
};

void score_portable(const AttentionScores& block) {
  score<Narrow>(block);
}
void absorb_portable(AttentionState& state, const AttentionKeys& keys) {
  absorb<Narrow>(state, keys);
}

#if WIDE_HAS_X86_TARGETS
[[gnu::target("avx2,fma")]] void score_avx2(const AttentionScores& block) {
  score<Narrow>(block);
}
[[gnu::target("avx2,fma")]] void absorb_avx2(AttentionState& state, const AttentionKeys& keys) {
  absorb<Narrow>(state, keys);
}
[[gnu::target("avx2,fma,avx512f")]] void score_avx512(const AttentionScores& block) {
  score<Broad>(block);
}
[[gnu::target("avx2,fma,avx512f")]] void absorb_avx512(AttentionState& state,
                                                       const AttentionKeys& keys) {
  absorb<Broad>(state, keys);
}

Kernels best() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return {score_portable, absorb_portable};
  }
  if (__builtin_cpu_supports("avx512f")) return {score_avx512, absorb_avx512};
  return {score_avx2, absorb_avx2};
}
#else
Kernels best() {
  return {score_portable, absorb_portable};
}
#endif

const Kernels& kernels() {
  static const Kernels chosen = best();
  return chosen;
}

}  // namespace

void start_attention(AttentionState& state, int dims) {
  for (int r = 0; r < kAttentionQueries; ++r) {
    std::fill_n(state.sums[r], dims, 0.0f);
    state.most[r] = kNone;
    state.total[r] = 0;
  }
}

void score_keys(const AttentionScores& block) {
  kernels().score(block);
}

void absorb_keys(AttentionState& state, const AttentionKeys& keys) {
  kernels().absorb(state, keys);
}

}  // namespace wide::cpu
