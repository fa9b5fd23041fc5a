// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One function, compiled for each instruction set by being inlined into a function of that target.
// Loops are plain; vectors of eight floats keep four queries' sums in registers while the keys of a
// block pass by.
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
using EightBits [[gnu::vector_size(32)]] = uint32_t;

/// Eight floats in memory. Copied as such: of a memcpy of several, g++ makes stores of another
/// width than what is loaded behind them, which waits for memory each time.
using EightThere [[gnu::vector_size(32), gnu::may_alias, gnu::aligned(4)]] = float;

[[gnu::always_inline]] inline const EightThere& eight_at(const float* from) {
  return *reinterpret_cast<const EightThere*>(from);
}
[[gnu::always_inline]] inline EightThere& eight_at(float* to) {
  return *reinterpret_cast<EightThere*>(to);
}

constexpr float kNone = -std::numeric_limits<float>::infinity();

/// x = 2^x for x <= 0; 0 below the normal numbers; NaN stays NaN. By Taylor's series over
/// [-1/2, 1/2]: its rest, (ln 2 / 2)^8 / 8!, is 5e-9. By reference, as vectors of other targets
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

/// Scores become powers over the row's largest; what was summed up shrinks where that has grown.
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

[[gnu::always_inline]] inline void absorb(AttentionState& state, const AttentionKeys& block) {
  constexpr int kRows = 4, kStep = 16;
  for (int r = 0; r < kAttentionQueries; ++r) weigh(state, block, r);
  for (int d = 0; d < block.dims; d += kStep) {
    for (int first = 0; first < kAttentionQueries; first += kRows) {
      Eight sums[kRows][2];
      for (int r = 0; r < kRows; ++r) {
        sums[r][0] = eight_at(state.sums[first + r] + d);
        sums[r][1] = eight_at(state.sums[first + r] + d + 8);
      }
      for (int j = 0; j < block.keys; ++j) {
        const Eight low = eight_at(block.values[j] + d), high = eight_at(block.values[j] + d + 8);
        for (int r = 0; r < kRows; ++r) {
          const float weight = block.scores[first + r][j];
          sums[r][0] += weight * low;
          sums[r][1] += weight * high;
        }
      }
      for (int r = 0; r < kRows; ++r) {
        eight_at(state.sums[first + r] + d) = sums[r][0];
        eight_at(state.sums[first + r] + d + 8) = sums[r][1];
      }
    }
  }
}

using Absorb = void (*)(AttentionState&, const AttentionKeys&);

void absorb_portable(AttentionState& state, const AttentionKeys& keys) {
  absorb(state, keys);
}

#if WIDE_HAS_X86_TARGETS
[[gnu::target("avx2,fma")]] void absorb_avx2(AttentionState& state, const AttentionKeys& keys) {
  absorb(state, keys);
}

Absorb best() {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has_avx2 ? absorb_avx2 : absorb_portable;
}
#else
Absorb best() {
  return absorb_portable;
}
#endif

}  // namespace

void start_attention(AttentionState& state, int dims) {
  for (int r = 0; r < kAttentionQueries; ++r) {
    std::fill_n(state.sums[r], dims, 0.0f);
    state.most[r] = kNone;
    state.total[r] = 0;
  }
}

void absorb_keys(AttentionState& state, const AttentionKeys& keys) {
  static const Absorb chosen = best();
  chosen(state, keys);
}

}  // namespace wide::cpu
