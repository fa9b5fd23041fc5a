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

/// y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] + bias[i, n]) for all members i in
/// one launch. Sums run over k upwards in fp32, whatever the tile: the tile changes no bit.
/// Nothing is launched where y is empty. cudaErrorInvalidConfiguration for more than 2^31 - 1
/// tiles, cudaErrorInvalidValue for a dtype other than fp32, fp16, bf16.
cudaError_t launch_linear_simt(LinearParams params, Dtype dtype, LinearSimtTile tile,
                               cudaStream_t stream);

}  // namespace wide::kernels
