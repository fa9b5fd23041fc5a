// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The seeds of several dropouts over the same members, where dropout's kernels read them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

/// Of each member in each dropout: its seed, and the number of its sequence.
struct DropoutSeeds {
  int64_t* values = nullptr;  ///< [num_dropouts, stored_members, 2]
  int64_t num_dropouts = 0, stored_members = 0;
  int64_t num_members = 0;  ///< the first of these: the others are left as they are
};

/// A launch's own members are in its parameters: 2 of at most 4 KiB. Nothing is uploaded.
inline constexpr int kMaxSeedsOfLaunch = 256;

/// Members [first, first + count) get seeds[0 .. count), and in dropout k the sequence
/// `sequence` num_dropouts + k. count: at most kMaxSeedsOfLaunch.
cudaError_t launch_set_dropout_seeds(const DropoutSeeds& of, int64_t first, const uint64_t* seeds,
                                     int count, uint64_t sequence, cudaStream_t stream);

/// Every sequence becomes the next one: num_dropouts is added to it; after `last` comes 0.
cudaError_t launch_advance_dropout_seeds(const DropoutSeeds& of, uint64_t last,
                                         cudaStream_t stream);

}  // namespace wide::kernels
