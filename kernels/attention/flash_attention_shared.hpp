// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared memory of flash_attention's blocks, apart from the launchers, which assert it: choosing a
// strategy needs no CUDA header.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// Upper bounds of a block's bytes, by the elements of a head.
constexpr int64_t attention_simt_shared_bytes(int64_t head_dim) {
  return 1024 * (head_dim <= 64 ? 52 : head_dim <= 128 ? 76 : 140);
}
constexpr int64_t attention_mma_shared_bytes(int64_t head_dim) {
  return 1024 * (head_dim <= 64 ? 48 : head_dim <= 128 ? 64 : head_dim <= 192 ? 120 : 160);
}
constexpr int64_t attention_decode_shared_bytes(int64_t head_dim) {
  return 1024 * (head_dim <= 32 ? 97 : head_dim <= 64 ? 98 : head_dim <= 128 ? 100 : 136);
}

}  // namespace wide::kernels
