// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the routed GEMM on Hopper's warpgroup products.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/linear/linear_wgmma_tile.hpp"
#include "kernels/linear/routed_linear_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct RoutedWgmmaParams {
  /// As LinearWgmmaParams'.
  CUtensorMap weight;
  /// x and its rows are aligned to 16 bytes; the pointer of weight is ignored; k is at least 1;
  /// `member` is negative.
  RoutedLinearParams routed;
  int num_multiprocessors;
};

/// As launch_routed_linear_simt() for the rows of all members, of fp16 or bf16; sums are those of
/// linear's wgmma, whose order depends on k alone. cudaErrorInvalidConfiguration for more than
/// 2^31 - 1 tiles or 32-bit coordinates; cudaErrorInvalidValue for other dtypes or tiles.
cudaError_t launch_routed_linear_wgmma(const RoutedWgmmaParams& params, Dtype dtype,
                                       LinearWgmmaTile tile, cudaStream_t stream);

}  // namespace wide::kernels
