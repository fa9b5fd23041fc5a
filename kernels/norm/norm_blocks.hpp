// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Block and slice counts of the norms over channels, for launchers and for plans; 0 for empty
// tensors. From a launch's params or from a problem, which have the same fields.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// 16-byte chunks of a channel per block of batchnorm's eval.
inline constexpr int64_t kEvalChunks = 1024;

template <class P>
bool is_empty_norm(const P& p) {
  return p.batch == 0 || p.num_members == 0 || p.channels == 0 || p.height == 0 || p.width == 0;
}

/// Groups of all batch rows of `members` members.
template <class P>
int64_t groupnorm_slices(const P& p, int64_t members) {
  return is_empty_norm(p) ? 0 : block_product({p.batch, members, p.groups});
}

/// Channels of `members` members.
template <class P>
int64_t batchnorm_slices(const P& p, int64_t members) {
  return is_empty_norm(p) ? 0 : block_product({members, p.channels});
}

/// Blocks per channel in mode eval, for a non-empty tensor. `vector`: elements in 16 bytes.
template <class P>
int64_t batchnorm_eval_blocks(const P& p, int64_t vector) {
  const int64_t chunks = p.batch * ((p.height * p.width + vector - 1) / vector);
  return (chunks - 1) / kEvalChunks + 1;
}

}  // namespace wide::kernels
