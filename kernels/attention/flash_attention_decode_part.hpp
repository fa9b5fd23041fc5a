// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The parts of flash_attention_decode, apart from its launcher: planning memory needs no CUDA
// header.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// The most queries of all heads that share keys.
inline constexpr int64_t kDecodeRows = 16;

/// Floats of a part of a key head: sums of all rows, then each row's largest exponent and
/// total.
constexpr int64_t decode_part_floats(int64_t head_dim) {
  const int64_t dims = head_dim <= 32 ? 32 : head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256;
  return kDecodeRows * (dims + 2);
}

}  // namespace wide::kernels
