// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads that wait for each other: what each takes is the latency of where it is served from, by
// which a warm L2 is told from an emptied one. Their rates are not far enough apart. For CUDA-only
// files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::bench {

/// Bytes from one place to the next: a cache line, so that every step is a line of its own.
inline constexpr int64_t kChaseStep = 128;

/// One thread follows `steps` links from place 0 and leaves the place where it ends. A link is the
/// place of the next one, in lines of kChaseStep bytes.
cudaError_t launch_chase(const void* links, int64_t steps, uint32_t* end, cudaStream_t stream);

}  // namespace wide::bench
