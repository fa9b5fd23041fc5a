// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of GEMMs over members of different shapes (compute capability 8.0 and up).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_mma_tile.hpp"
#include "kernels/linear/ragged_linear_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y_i[m, n] = epilogue(sum_k x_i[m, k] * weight_i[n, k]) for all members i of the table in one
/// launch, one block a tile. Nothing is launched without tiles. cudaErrorInvalidConfiguration for
/// more than 2^31 - 1 tiles.
/// Sums run over k upwards in fp32. cudaErrorInvalidValue for a dtype other than fp32, fp16, bf16.
cudaError_t launch_ragged_linear_simt(const RaggedLinearParams& params, Dtype dtype,
                                      cudaStream_t stream);
/// The order of a sum depends on the member's tile alone. cudaErrorInvalidValue for tf32x3.
cudaError_t launch_ragged_linear_tensor_core(const RaggedLinearParams& params, LinearMath math,
                                             cudaStream_t stream);

}  // namespace wide::kernels
