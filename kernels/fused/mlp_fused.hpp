// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of whole multilayer perceptrons of all members in one kernel.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/fused/mlp_fused_shape.hpp"

namespace wide::kernels {

/// One for each MlpMath. `params.net` has at most kMaxMlpLayers layers of widths up to
/// kMaxMlpWidth, `params.shape` is mlp_fused_shape() of it with blocks_per_member >= 1.
/// cudaErrorInvalidConfiguration for more than 2^31 - 1 blocks.
cudaError_t launch_mlp_fused_fp16(const MlpFusedParams& params, cudaStream_t stream);
cudaError_t launch_mlp_fused_bf16(const MlpFusedParams& params, cudaStream_t stream);
cudaError_t launch_mlp_fused_tf32(const MlpFusedParams& params, cudaStream_t stream);
cudaError_t launch_mlp_fused_fp32(const MlpFusedParams& params, cudaStream_t stream);

}  // namespace wide::kernels
