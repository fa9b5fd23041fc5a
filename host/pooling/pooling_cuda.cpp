// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pooling/pooling_run.hpp"
#include "kernels/pooling/pooling_wide.hpp"

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

void run_pooling_cuda(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                      const PoolingArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::PoolingParams params;
  params.x = arguments.x.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.channels = problem.channels;
  params.batch = problem.batch;
  params.rows = axis_of(problem.height, problem.out_height, problem.rows);
  params.columns = axis_of(problem.width, problem.out_width, problem.columns);
  params.x_strides = problem.x;
  params.y_strides = problem.y;
  params.counts_padding = problem.counts_padding;
  const bool is_last = problem.layout == ChannelLayout::channels_last;
  const auto launch = is_last ? kernels::launch_pooling_last : kernels::launch_pooling_wide;
  if (strategy == WideStrategy::wide) {
    WIDE_CHECK_CUDA(launch(problem.mode, problem.dtype, params, native));
    return;
  }
  const int64_t size = dtype_bytes(problem.dtype);
  kernels::PoolingParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.x = static_cast<const char*>(params.x) + n * problem.x.member * size;
    one.y = static_cast<char*>(params.y) + n * problem.y.member * size;
    WIDE_CHECK_CUDA(launch(problem.mode, problem.dtype, one, native));
  }
}

}  // namespace wide
