// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wide/strides.hpp"

namespace wide::kernels {

/// q, y [batch, seq, num_members, heads, head_dim], k, v [batch, kv_seq, num_members, kv_heads,
/// head_dim], as rows of (batch row, position) and members; strides in elements.
struct FlashAttentionParams {
  const void* q;
  const void* k;
  const void* v;
  void* y;
  const int32_t* key_lengths;  ///< [num_members, batch]; null: kv_seq; any value
  const float* slopes;         ///< [num_members, heads]; null: none
  const void* bias;            ///< of (member, batch row, head, query), by bias_strides; null: none
  int64_t num_members, batch, heads, kv_heads;
  int32_t seq, kv_seq;  ///< up to 2^30
  int32_t head_dim;     ///< in [1, 256]
  int32_t window;       ///< below 2^30; 0: none
  RowStrides q_strides, k_strides, v_strides, y_strides;
  ScoreBiasStrides bias_strides;
  int64_t key_lengths_member_stride, slopes_member_stride;
  int64_t shared_bytes_per_block;  ///< that the device has: tiles of the widest heads differ
  float scale, soft_cap;
  bool is_causal;
  bool aligns_to_lengths;  ///< positions end at the key length instead of at kv_seq
  /// Whether 16 bytes may be moved at a time. Set by the launchers.
  bool q_is_aligned, k_is_aligned, v_is_aligned, y_is_aligned;
};

}  // namespace wide::kernels
