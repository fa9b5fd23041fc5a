// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Limits on the blocks of a launch, for launchers and for plans, which need no CUDA header.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace wide::kernels {

/// In a grid of one dimension.
inline constexpr int64_t kMaxGridBlocks = 0x7fffffff;

/// The product of non-negative factors; kMaxGridBlocks + 1 where it exceeds kMaxGridBlocks.
constexpr int64_t block_product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  bool is_too_many = false;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    is_too_many = is_too_many || factor > kMaxGridBlocks / product;
    if (!is_too_many) product *= factor;
  }
  return is_too_many ? kMaxGridBlocks + 1 : product;
}

}  // namespace wide::kernels
