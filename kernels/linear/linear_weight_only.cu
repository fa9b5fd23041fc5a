// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on quantised weights: the launcher. The kernel is linear_weight_only.cuh's.
#include "kernels/linear/linear_weight_only.cuh"

namespace wide::kernels {

cudaError_t launch_linear_weight_only(const LinearWeightOnlyParams& params, Dtype dtype,
                                      WeightFormat format, LinearWeightOnlyTile tile,
                                      cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  if (dtype == Dtype::fp16) {
    return launch_linear_weight_only_fp16(params, format, tile, stream);
  }
  if (dtype == Dtype::bf16) {
    return launch_linear_weight_only_bf16(params, format, tile, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
