// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of recurrent layers' kernels.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/recurrent/recurrent_params.hpp"

namespace wide::kernels {

/// Computes h_t and c_t from the gates of a step. cudaErrorInvalidConfiguration for more than 2^31
/// - 1 blocks.
cudaError_t launch_recurrent_cell(const RecurrentCellParams& params, cudaStream_t stream);

/// One for each RecurrentMath. `params.shape` is recurrent_fused_shape() of the rest; steps >= 1.
/// cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks.
cudaError_t launch_recurrent_fused_fp16(const RecurrentFusedParams& params, cudaStream_t stream);
cudaError_t launch_recurrent_fused_bf16(const RecurrentFusedParams& params, cudaStream_t stream);
cudaError_t launch_recurrent_fused_fp32(const RecurrentFusedParams& params, cudaStream_t stream);

}  // namespace wide::kernels
