// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/pooling/pooling_params.hpp"
#include "host/pooling/pooling_run.hpp"
#include "kernels/pooling/pooling_wide.hpp"

namespace wide {

void run_pooling_cuda(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                      const PoolingArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::PoolingParams params = pooling_params(problem);
  params.x = arguments.x.data;
  params.y = arguments.y.data;
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
    one.x = advanced(params.x, n * problem.x.member, size);
    one.y = advanced(params.y, n * problem.y.member, size);
    WIDE_CHECK_CUDA(launch(problem.mode, problem.dtype, one, native));
  }
}

}  // namespace wide
