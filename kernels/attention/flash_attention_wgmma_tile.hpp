// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The boxes of flash_attention_wgmma, apart from its launcher: making tensor maps needs no
// kernel.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// Elements of a head per box: 128 bytes.
inline constexpr int kAttentionPanel = 64;
/// Queries per box: a warpgroup's.
inline constexpr int kAttentionBoxQueries = 64;

/// Keys of a tile, by the elements of a head.
constexpr int attention_wgmma_keys(int64_t head_dim) {
  return head_dim <= 128 ? 128 : 64;
}

}  // namespace wide::kernels
