// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/norm/norm_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// The product of batch, height and width fits in 31 bits.
struct BatchnormParams : ChannelNormParams {
  float* running_mean = nullptr;  ///< [members, channels]
  float* running_variance = nullptr;
  const float* epsilons = nullptr;  ///< [members]; null: `epsilon` for all
  const float* momenta = nullptr;   ///< [members]; null: `momentum` for all
  int64_t mean_member_stride = 0, variance_member_stride = 0;
  float momentum = 0;
};

/// y by the running statistics, all members in one launch.
cudaError_t launch_batchnorm_eval(Dtype dtype, const BatchnormParams& params, cudaStream_t stream);

/// y by the batch's statistics, which update the running ones. `shared_bytes_per_block`: the limit
/// of this device.
cudaError_t launch_batchnorm_train(Dtype dtype, const BatchnormParams& params,
                                   int64_t shared_bytes_per_block, cudaStream_t stream);

}  // namespace wide::kernels
