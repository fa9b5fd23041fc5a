// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What empties the L2 of everything else. For CUDA-only files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::bench {

/// Reads `bytes` of `data`, a multiple of 16, through the L2 but not the L1. If any of its words is
/// not 0, something that is not is written to `found`; of zeros, nothing is.
cudaError_t launch_read(const void* data, int64_t bytes, uint32_t* found, cudaStream_t stream);

}  // namespace wide::bench
