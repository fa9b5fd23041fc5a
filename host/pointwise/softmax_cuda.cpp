// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "kernels/pointwise/softmax_wide.hpp"

namespace wide {

void run_softmax_cuda(const Context& context, const SoftmaxProblem& problem, WideStrategy strategy,
                      const SoftmaxArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::SoftmaxParams params;
  params.x = arguments.x.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.rows;
  params.features = problem.features;
  params.x_row_stride = problem.x.row;
  params.x_member_stride = problem.x.member;
  params.y_row_stride = problem.y.row;
  params.y_member_stride = problem.y.member;
  params.is_log = problem.is_log;
  if (strategy == WideStrategy::wide) {
    WIDE_CHECK_CUDA(kernels::launch_softmax_wide(problem.dtype, params, native));
    return;
  }
  const int64_t size = dtype_bytes(problem.dtype);
  kernels::SoftmaxParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.x = advanced(params.x, n * problem.x.member, size);
    one.y = advanced(params.y, n * problem.y.member, size);
    WIDE_CHECK_CUDA(kernels::launch_softmax_wide(problem.dtype, one, native));
  }
}

}  // namespace wide
