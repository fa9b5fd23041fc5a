// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts conv_direct for all members at once, or for one after another.
#include "host/conv/conv_params.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "kernels/conv/conv_direct.hpp"

namespace wide {

ConvRunner make_conv_direct(const Context& context, const ConvProblem& problem) {
  return {[context, problem = with_rows_as_planes(problem)](const ConvArguments& arguments,
                                                            const Execution& execution) {
    const CurrentDevice current(context.device().ordinal);
    WIDE_CHECK_CUDA(kernels::launch_conv_direct(conv_params(problem, arguments),
                                                x_layout_of(problem), problem.layout, problem.dtype,
                                                native_stream(execution.stream)));
  }};
}

ConvRunner make_conv_cuda_sequential(const Context& context, const ConvProblem& problem) {
  return {[context, problem = with_rows_as_planes(problem)](const ConvArguments& arguments,
                                                            const Execution& execution) {
    const CurrentDevice current(context.device().ordinal);
    const kernels::ConvParams all = conv_params(problem, arguments);
    for (int64_t n = 0; n < problem.num_members; ++n) {
      WIDE_CHECK_CUDA(kernels::launch_conv_direct(conv_member(all, n, problem.dtype),
                                                  x_layout_of(problem), problem.layout,
                                                  problem.dtype, native_stream(execution.stream)));
    }
  }};
}

}  // namespace wide
