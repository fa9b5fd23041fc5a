// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/norm/batchnorm_wide.hpp"

namespace wide::kernels {

/// Whether channels have one position each and lie side by side, those of all members: as behind a
/// linear layer.
inline bool has_columns(const BatchnormParams& p) {
  const auto are_adjacent = [&](const ChannelStrides& s) {
    return (p.channels == 1 || s.channel == 1) && (p.num_members == 1 || s.member == p.channels);
  };
  return p.height * p.width == 1 && are_adjacent(p.x_strides) && are_adjacent(p.y_strides);
}

/// launch_batchnorm_eval() and launch_batchnorm_train() of columns that are not empty.
cudaError_t launch_batchnorm_columns_eval(Dtype dtype, const BatchnormParams& params,
                                          cudaStream_t stream);
cudaError_t launch_batchnorm_columns_train(Dtype dtype, const BatchnormParams& params,
                                           int64_t shared_bytes_per_block, cudaStream_t stream);

}  // namespace wide::kernels
