// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The online softmax of a block of queries on the CPU. A block of keys is absorbed at a time, the
// result does not depend on what else is computed.
#pragma once

#include "host/linear/linear_cpu_block.hpp"

namespace wide::cpu {

inline constexpr int kAttentionQueries = kBlockRows;
inline constexpr int kAttentionKeys = kBlockColumns;
inline constexpr int kAttentionDims = 256;

/// Of every query: the largest score so far, the sum of powers over it, and the sum of values
/// weighted by them. 17 KiB, on the stack.
struct alignas(64) AttentionState {
  float sums[kAttentionQueries][kAttentionDims];
  float most[kAttentionQueries];
  float total[kAttentionQueries];
};

struct AttentionKeys {
  /// Base-2 logarithms, -infinity for what is hidden. Overwritten.
  float (*scores)[kAttentionKeys] = nullptr;
  /// Rows of `dims` floats, zero beyond the head's.
  const float (*values)[kAttentionDims] = nullptr;
  int keys = 0;
  int dims = 0;  ///< a multiple of 16
};

void start_attention(AttentionState& state, int dims);
void absorb_keys(AttentionState& state, const AttentionKeys& keys);

}  // namespace wide::cpu
