// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp_fused_half.cuh for fp16.
#include "kernels/fused/mlp_fused_half.cuh"

namespace wide::kernels {

cudaError_t launch_mlp_fused_fp16(const MlpFusedParams& params, cudaStream_t stream) {
  return launch_mlp_half<__half>(params, stream);
}

}  // namespace wide::kernels
