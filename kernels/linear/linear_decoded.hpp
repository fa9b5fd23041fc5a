// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of what turns quantised weights into 16-bit ones (compute capability 8.0 and up).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/linear/linear_decoded_grid.hpp"
#include "wide/dtype.hpp"
#include "wide/weight_format.hpp"

namespace wide::kernels {

struct LinearDecodedParams {
  const void* blobs;  ///< a member's every member_bytes; both multiples of 16
  void* weight;       ///< [num_members, 16 strips, 64 tiles], at a multiple of 16
  int64_t member_bytes, strip_bytes;
  int64_t num_members, strips, tiles;
  int tiles_per_group;  ///< 1 or 2
};

/// weight[i, n, k] = scale * value of the code, rounded once to `dtype`, for all members i in one
/// launch; what the blobs have past the last output or input, too. Nothing is launched where there
/// is no tile. cudaErrorInvalidConfiguration for more than 2^31 - 1 warps; cudaErrorInvalidValue
/// for packed weights, or a dtype other than fp16 and bf16.
cudaError_t launch_linear_decoded(const LinearDecodedParams& params, Dtype dtype,
                                  WeightFormat format, cudaStream_t stream);

}  // namespace wide::kernels
