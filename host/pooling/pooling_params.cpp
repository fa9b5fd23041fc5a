// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/pooling/pooling_params.hpp"

#include "kernels/pooling/pooling_cut.hpp"

namespace wide {

namespace {

kernels::PoolingAxis axis_of(int64_t in, int64_t out, const PoolingWindow& window) {
  kernels::PoolingAxis axis;
  axis.in = static_cast<int>(in);
  axis.out = static_cast<int>(out);
  axis.kernel = static_cast<int>(window.kernel);
  axis.stride = static_cast<int>(window.stride);
  axis.padding = static_cast<int>(window.padding);
  axis.dilation = static_cast<int>(window.dilation);
  return axis;
}

}  // namespace

kernels::PoolingParams pooling_params(const PoolingProblem& problem) {
  kernels::PoolingParams params;
  params.num_members = problem.num_members;
  params.channels = problem.channels;
  params.batch = problem.batch;
  params.rows = axis_of(problem.height, problem.out_height, problem.rows);
  params.columns = axis_of(problem.width, problem.out_width, problem.columns);
  params.x_strides = problem.x;
  params.y_strides = problem.y;
  params.counts_padding = problem.counts_padding;
  return params;
}

int64_t pooling_launch_blocks(const PoolingProblem& problem, int64_t members) {
  if (problem.batch == 0 || problem.channels == 0) return 0;
  kernels::PoolingParams params = pooling_params(problem);
  params.num_members = members;
  // Single channels, as vectors take an alignment.
  if (problem.layout == ChannelLayout::channels_last) {
    return kernels::pooling_last_blocks(problem.mode, params, 1);
  }
  const auto vector = static_cast<int>(16 / dtype_bytes(problem.dtype));
  kernels::Cutter cutter(problem.mode, params, vector);
  return kernels::pooling_blocks(params, cutter.cut(), cutter.is_long());
}

}  // namespace wide
