// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent_fused_half.cuh for fp16.
#include "kernels/recurrent/recurrent_fused_half.cuh"

namespace wide::kernels {

cudaError_t launch_recurrent_fused_fp16(const RecurrentFusedParams& params, cudaStream_t stream) {
  return launch_recurrent<RecurrentHalfProduct<__half>>(params, stream);
}

}  // namespace wide::kernels
