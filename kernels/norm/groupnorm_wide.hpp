// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/norm/norm_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// A group has channels / groups channels; their height * width values fit in 31 bits.
struct GroupnormParams : ChannelNormParams {
  int64_t groups = 0;  ///< per member
};

/// Every group of every batch row and member separately, all in one launch.
/// `shared_bytes_per_block`: the limit of this device.
cudaError_t launch_groupnorm_wide(Dtype dtype, const GroupnormParams& params,
                                  int64_t shared_bytes_per_block, cudaStream_t stream);

/// The same with channels last, in one launch or two. `workspace`: groupnorm_last_cut()'s partials.
cudaError_t launch_groupnorm_last(Dtype dtype, const GroupnormParams& params, void* workspace,
                                  cudaStream_t stream);

}  // namespace wide::kernels
