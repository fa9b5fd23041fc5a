// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the batched GEMM on Hopper's warpgroup products (compute capability 9.0a).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "kernels/linear/linear_wgmma_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct LinearWgmmaParams {
  /// x as {k, rows, members} with boxes of {kWgmmaTileK, tile_m, 1}, weight as {k, outputs,
  /// members} with boxes of {kWgmmaTileK, tile_n, 1}; both with a swizzle of 128 bytes.
  CUtensorMap x, weight;
  LinearParams linear;  ///< pointers of x and weight are not looked at; k is at least 1
  int num_multiprocessors;
};

/// y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]) for all members i in
/// one launch of at most one block a multiprocessor. The tile changes no bit. Nothing is launched
/// where y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1 tiles or
/// 2^31 - 1 inputs; cudaErrorInvalidValue for a dtype other than fp16, bf16.
cudaError_t launch_linear_wgmma(const LinearWgmmaParams& params, Dtype dtype, LinearWgmmaTile tile,
                                cudaStream_t stream);

}  // namespace wide::kernels
