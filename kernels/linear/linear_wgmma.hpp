// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the batched GEMM on Hopper's warpgroup products.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "kernels/linear/linear_wgmma_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct LinearWgmmaParams {
  /// x as {k, rows, members} with boxes of {kWgmmaTileBytes, block_m, 1}, weight as {k, outputs,
  /// members} with boxes of {kWgmmaTileBytes, block_weight_rows, 1}; both with a swizzle of 128
  /// bytes.
  CUtensorMap x, weight;
  /// y as {outputs, rows, members} with boxes of {kWgmmaStoreN, kWgmmaStoreM, 1} and a swizzle of
  /// 128 bytes, where stores_boxes.
  CUtensorMap y;
  bool stores_boxes;    ///< for outputs of 16 bits
  LinearParams linear;  ///< pointers of x and weight are ignored; k is at least 1
  int num_multiprocessors;
};

/// y by `linear`. x and weight are of one dtype: fp16 or bf16, with y of the same; fp32, multiplied
/// as tf32; fp8_e4m3 or fp8_e5m2, with y of fp16 or bf16. Nothing is launched where y is empty.
/// cudaErrorInvalidConfiguration for more than 2^31 - 1 tiles or 32-bit coordinates;
/// cudaErrorInvalidValue for other dtypes or tiles.
cudaError_t launch_linear_wgmma(const LinearWgmmaParams& params, Dtype dtype, Dtype y_dtype,
                                LinearWgmmaTile tile, cudaStream_t stream);

}  // namespace wide::kernels
