// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pointwise/packed_params_cuda.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "kernels/pointwise/pointwise_wide.hpp"

namespace wide {

namespace {

/// The function's parameters as the kernels expect them.
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
  const auto native = native_stream(stream);
  kernels::PointwiseParams params;
  params.packed = packed_params(rows_of(problem), arguments.x.data, arguments.y.data);
  if (problem.num_slopes > 0) {
    using enum kernels::SecondOperand;
    params.packed.second = arguments.slope.data;
    params.packed.second_member_stride = problem.slope_member_stride;
    params.packed.second_operand = problem.num_slopes == problem.features ? elements : members;
  }
  set_parameters(params, problem);
  launch_members(
      strategy, problem.dtype, params.packed, [&](const kernels::PackedParams& packed, int64_t) {
        params.packed = packed;
        WIDE_CHECK_CUDA(
            kernels::launch_pointwise_wide(problem.function, problem.dtype, params, native));
      });
}

}  // namespace wide
