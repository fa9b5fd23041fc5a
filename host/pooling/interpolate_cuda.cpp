// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/pooling/interpolate_params.hpp"
#include "host/pooling/interpolate_run.hpp"
#include "kernels/pooling/interpolate_wide.hpp"

namespace wide {

void run_interpolate_cuda(const Context& context, const InterpolateProblem& problem,
                          WideStrategy strategy, const InterpolateArguments& arguments,
                          Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::InterpolateParams params = interpolate_params(problem);
  params.x = arguments.x.data;
  params.y = arguments.y.data;
  const bool is_last = problem.layout == ChannelLayout::channels_last;
  const auto launch = is_last ? kernels::launch_interpolate_last : kernels::launch_interpolate_wide;
  if (strategy == WideStrategy::wide) {
    WIDE_CHECK_CUDA(launch(problem.dtype, params, native));
    return;
  }
  const int64_t size = dtype_bytes(problem.dtype);
  kernels::InterpolateParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.x = advanced(params.x, n * problem.x.member, size);
    one.y = advanced(params.y, n * problem.y.member, size);
    WIDE_CHECK_CUDA(launch(problem.dtype, one, native));
  }
}

}  // namespace wide
