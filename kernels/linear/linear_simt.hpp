// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the hand-rolled batched GEMM on the ordinary fp32 units.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "kernels/linear/linear_simt_tile.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y by `params` for all members in one launch. x and weight of one dtype: fp32, fp16, bf16, with y
/// of the same, or fp8, with y of fp16 or bf16 and the tile m64n64 only. Sums run in order of k in
/// fp32, whatever the tile: the tile changes no bit. Nothing is launched where y is empty.
/// cudaErrorInvalidConfiguration for more than 2^31 - 1 tiles, cudaErrorInvalidValue for other
/// dtypes or tiles.
cudaError_t launch_linear_simt(LinearParams params, Dtype dtype, Dtype y_dtype, LinearSimtTile tile,
                               cudaStream_t stream);

}  // namespace wide::kernels
