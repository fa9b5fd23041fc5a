// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of convolution as a matrix product on warp-level matrix instructions (compute capability
// 8.0 and up).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/conv/conv_implicit_gemm_tile.hpp"
#include "kernels/conv/conv_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// All members and groups in one launch; fp32 is multiplied as tf32. The form `vector` is taken
/// where x's channels and the weight's rows are contiguous in whole 16 bytes. A sum goes through
/// the weight's elements in their order, whatever the tile and the form. Nothing is launched where
/// y is empty. The inputs of one output span less than 2^31 elements of x and of the weight, and
/// less than 2^30 positions. cudaErrorInvalidConfiguration for more than 2^31 - 1 tiles;
/// cudaErrorInvalidValue for a tile that the form or the dtype does not have.
cudaError_t launch_conv_implicit_gemm(const ConvParams& params, Dtype dtype,
                                      const ConvGemmTiles& tiles, cudaStream_t stream);

}  // namespace wide::kernels
