// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How interpolate's kernel for channels last spreads outputs over threads, `vector` channels each.
#pragma once

#include <algorithm>

#include "kernels/pooling/interpolate_params.hpp"

namespace wide::kernels {

constexpr int kInterpolateLastThreads = 256;  // of a block
constexpr int64_t kEnoughThreads = 1 << 18;   // about what an H200 has at a time
constexpr int64_t kMostRows = 16;             // of a thread: further ones save little

/// Of a row of outputs of all images.
inline int64_t interpolate_last_vectors(const InterpolateParams& p, int vector) {
  return p.batch * p.columns.out * (p.num_members * p.channels / vector);
}
/// Rows of outputs that a thread goes down: as many as leave enough threads.
inline int interpolate_last_rows(const InterpolateParams& p, int vector) {
  const int64_t outputs = p.rows.out * interpolate_last_vectors(p, vector);
  const int64_t most = std::min<int64_t>(kMostRows, p.rows.out);
  return static_cast<int>(std::clamp<int64_t>(outputs / kEnoughThreads, 1, most));
}
inline int64_t interpolate_last_threads(const InterpolateParams& p, int vector) {
  const int rows = interpolate_last_rows(p, vector);
  return interpolate_last_vectors(p, vector) * ((p.rows.out - 1) / rows + 1);
}
inline int64_t interpolate_last_blocks(const InterpolateParams& p, int vector) {
  return (interpolate_last_threads(p, vector) - 1) / kInterpolateLastThreads + 1;
}

}  // namespace wide::kernels
