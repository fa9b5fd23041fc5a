// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear_weight_only.cuh for x and y in bf16.
#include "kernels/linear/linear_weight_only.cuh"

namespace wide::kernels {

cudaError_t launch_linear_weight_only_bf16(const LinearWeightOnlyParams& params,
                                           WeightFormat format, LinearWeightOnlyTile tile,
                                           cudaStream_t stream) {
  return launch_type<__nv_bfloat16>(params, format, tile, stream);
}

}  // namespace wide::kernels
