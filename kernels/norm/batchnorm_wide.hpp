// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/channels.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// x, y [batch, members, channels, height, width], parameters [members, channels]; strides in
/// elements.
struct BatchnormParams {
  const void* x = nullptr;
  const void* gamma = nullptr;  ///< null: 1
  const void* beta = nullptr;   ///< null: 0
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  const float* epsilons = nullptr;  ///< [members]; null: `epsilon` for all
  const float* momenta = nullptr;   ///< [members]; null: `momentum` for all
  void* y = nullptr;                ///< may be x
  int64_t num_members = 0, channels = 0;
  int64_t batch = 0, height = 0, width = 0;  ///< their product fits in 31 bits
  ChannelStrides x_strides{}, y_strides{};
  int64_t gamma_member_stride = 0, beta_member_stride = 0;
  int64_t mean_member_stride = 0, variance_member_stride = 0;
  float epsilon = 0, momentum = 0;
};

/// y by the running statistics, all members in one launch.
cudaError_t launch_batchnorm_eval(Dtype dtype, const BatchnormParams& params, cudaStream_t stream);

/// y by the batch's statistics, which move the running ones. `shared_bytes_per_block`: what a block
/// may have on this device.
cudaError_t launch_batchnorm_train(Dtype dtype, const BatchnormParams& params,
                                   int64_t shared_bytes_per_block, cudaStream_t stream);

}  // namespace wide::kernels
