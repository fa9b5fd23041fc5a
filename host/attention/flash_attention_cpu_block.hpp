// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The online softmax of a block of queries on the CPU, which absorbs a block of keys at a time. The
// result does not depend on what else is computed.
#pragma once

namespace wide::cpu {

inline constexpr int kAttentionQueries = 32;
inline constexpr int kAttentionKeys = 32;
inline constexpr int kAttentionDims = 256;

/// For every query: the largest score so far, the sum of powers relative to it, and the sum of
/// values weighted by them. 33 KiB, on the stack.
struct alignas(64) AttentionState {
  float sums[kAttentionQueries][kAttentionDims];
  float most[kAttentionQueries];
  float total[kAttentionQueries];
};

/// Keys for the first `queries` queries; the rows after these, up to the next multiple of eight,
/// are computed, too.
struct AttentionKeys {
  /// Base-2 logarithms, -infinity for hidden keys. Overwritten.
  float (*scores)[kAttentionKeys] = nullptr;
  /// Rows of `dims` floats, zero beyond the head's.
  const float (*values)[kAttentionDims] = nullptr;
  int queries = 0;
  int keys = 0;
  int dims = 0;  ///< a multiple of kAttentionKeys
};

/// The operands of products of queries and keys, and the products.
struct AttentionScores {
  const float (*queries)[kAttentionDims] = nullptr;
  const float (*keys)[kAttentionKeys] = nullptr;  ///< transposed: `dims` rows
  float (*scores)[kAttentionKeys] = nullptr;
  int num_queries = 0;  ///< as in AttentionKeys
  int dims = 0;
};

void start_attention(AttentionState& state, int dims);
void score_keys(const AttentionScores& block);
void absorb_keys(AttentionState& state, const AttentionKeys& keys);

}  // namespace wide::cpu
