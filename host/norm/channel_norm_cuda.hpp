// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From the operands of the norms over channels to the parameters that their kernels share.
#pragma once

#include "host/core/pointer.hpp"
#include "kernels/norm/norm_params.hpp"
#include "wide/dtype.hpp"

namespace wide {

template <class Problem, class Arguments>
void set_channel_params(kernels::ChannelNormParams& params, const Problem& problem,
                        const Arguments& arguments) {
  params.x = arguments.x.data;
  params.gamma = arguments.gamma.data;
  params.beta = arguments.beta.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.channels = problem.channels;
  params.batch = problem.batch;
  params.height = problem.height;
  params.width = problem.width;
  params.x_strides = problem.x;
  params.y_strides = problem.y;
  params.gamma_member_stride = problem.gamma_member_stride;
  params.beta_member_stride = problem.beta_member_stride;
  params.epsilon = problem.epsilon;
}

/// Narrows the parameters to member n.
inline void select_member(kernels::ChannelNormParams& params, int64_t n, Dtype dtype) {
  const int64_t bytes = dtype_bytes(dtype);
  params.num_members = 1;
  params.x = advanced(params.x, n * params.x_strides.member, bytes);
  params.gamma = advanced(params.gamma, n * params.gamma_member_stride, bytes);
  params.beta = advanced(params.beta, n * params.beta_member_stride, bytes);
  params.y = advanced(params.y, n * params.y_strides.member, bytes);
}

}  // namespace wide
