// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused_half.cuh for bf16.
#include "kernels/fused/mlp_fused_half.cuh"

namespace wide::kernels {

cudaError_t launch_mlp_fused_bf16(const MlpFusedParams& params, cudaStream_t stream) {
  return launch_mlp_half<__nv_bfloat16>(params, stream);
}

}  // namespace wide::kernels
