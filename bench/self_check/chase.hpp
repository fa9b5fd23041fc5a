// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads that depend on one another: each takes the latency of the memory level that serves it,
// which distinguishes a warm L2 from a flushed one; their bandwidths are too similar. For CUDA-only
// files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::bench {

/// Distance of places in bytes: a cache line, so that every step uses another one.
inline constexpr int64_t kChaseStep = 128;

/// Chaser i, a thread in a block of its own, follows `steps` links from place i and writes the
/// place where it ends to ends[i]. A link is the place of the next one, in lines of kChaseStep
/// bytes.
cudaError_t launch_chase(const void* links, int64_t steps, int chasers, uint32_t* ends,
                         cudaStream_t stream);

}  // namespace wide::bench
