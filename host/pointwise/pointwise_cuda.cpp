// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "kernels/pointwise/pointwise_wide.hpp"

namespace wide {

namespace {

/// The parameters of the function, as kernels know them.
void set_parameters(kernels::PointwiseParams& params, const PointwiseProblem& problem) {
  using enum PointwiseFunction;
  if (problem.function == leaky_relu) params.a = problem.slope;
  if (problem.function == elu) params.a = problem.alpha;
  if (problem.function == softplus) params.a = problem.beta, params.b = 1 / problem.beta;
  if (problem.function == clamp) params.a = problem.low, params.b = problem.high;
}

}  // namespace

void run_pointwise_cuda(const Context& context, const PointwiseProblem& problem,
                        WideStrategy strategy, const PointwiseArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = static_cast<cudaStream_t>(stream.native());
  const bool has_slope = problem.num_slopes > 0;
  kernels::PointwiseParams params;
  params.x = arguments.x.data;
  params.slope = has_slope ? arguments.slope.data : nullptr;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.rows;
  params.features = problem.features;
  params.x_row_stride = problem.x.row;
  params.x_member_stride = problem.x.member;
  params.y_row_stride = problem.y.row;
  params.y_member_stride = problem.y.member;
  params.slope_member_stride = problem.slope_member_stride;
  params.has_slope_per_feature = has_slope && problem.num_slopes == problem.features;
  set_parameters(params, problem);
  const auto launch = [&](const kernels::PointwiseParams& p) {
    WIDE_CHECK_CUDA(kernels::launch_pointwise_wide(problem.function, problem.dtype, p, native));
  };
  if (strategy == WideStrategy::wide) return launch(params);
  const int64_t size = dtype_bytes(problem.dtype);
  kernels::PointwiseParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.x = static_cast<const char*>(params.x) + n * problem.x.member * size;
    one.y = static_cast<char*>(params.y) + n * problem.y.member * size;
    if (has_slope) {
      one.slope = static_cast<const char*>(params.slope) + n * problem.slope_member_stride * size;
    }
    launch(one);
  }
}

}  // namespace wide
