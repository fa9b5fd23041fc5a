// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What launches of the norms over channels number, for the launchers and for who plans; 0 of
// empty tensors. Of a launch's params or of a problem, which have the same fields.
#pragma once

#include "kernels/common/grid_blocks.hpp"

namespace wide::kernels {

/// 16-byte chunks of a channel that a block of batchnorm's eval takes.
inline constexpr int64_t kEvalChunks = 1024;

template <class P>
bool is_empty_norm(const P& p) {
  return p.batch == 0 || p.num_members == 0 || p.channels == 0 || p.height == 0 || p.width == 0;
}

/// Groups of all batch rows of so many members.
template <class P>
int64_t groupnorm_slices(const P& p, int64_t members) {
  return is_empty_norm(p) ? 0 : block_product({p.batch, members, p.groups});
}

/// Channels of so many members.
template <class P>
int64_t batchnorm_slices(const P& p, int64_t members) {
  return is_empty_norm(p) ? 0 : block_product({members, p.channels});
}

/// Blocks of a channel in mode eval, of a tensor that is not empty. `vector`: elements of 16 bytes.
template <class P>
int64_t batchnorm_eval_blocks(const P& p, int64_t vector) {
  const int64_t chunks = p.batch * ((p.height * p.width + vector - 1) / vector);
  return (chunks - 1) / kEvalChunks + 1;
}

}  // namespace wide::kernels
