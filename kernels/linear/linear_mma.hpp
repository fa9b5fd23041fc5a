// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of the batched GEMMs on warp-level matrix instructions (compute capability 8.0 and up).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_mma_tile.hpp"
#include "kernels/linear/linear_params.hpp"

namespace wide::kernels {

/// y by `params` for all members in one launch. The order of a sum depends on the tile and
/// the planes alone. Nothing is launched where y is empty. cudaErrorInvalidConfiguration for
/// more than 2^31 - 1 tiles; cudaErrorInvalidValue for a tile that the launcher does not
/// have.
/// Tiles m64n64, m128n64, and m128n128 for 16-bit elements.
cudaError_t launch_linear_tensor_core(const LinearParams& params, LinearMath math,
                                      LinearMmaTile tile, cudaStream_t stream);
/// Tiles m8n64, m16n64, m32n64, m16n16: streams weights. Where params.planes.count > 0 the shares
/// of the sums go there, without the epilogue, and y is not written: launch_linear_epilogue
/// computes it from them.
cudaError_t launch_linear_small_m(const LinearParams& params, LinearMath math, LinearMmaTile tile,
                                  cudaStream_t stream);

}  // namespace wide::kernels
