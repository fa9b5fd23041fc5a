// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/packed_params_cuda.hpp"
#include "kernels/pointwise/binary_wide.hpp"

namespace wide {

void run_binary_cuda(const Context& context, const BinaryProblem& problem, WideStrategy strategy,
                     const BinaryArguments& arguments, Stream stream) {
  using enum kernels::SecondOperand;
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  const bool has_features =
      problem.broadcast == Broadcast::none || problem.broadcast == Broadcast::rows;
  kernels::PackedParams params =
      packed_params(rows_of(problem), arguments.x.data, arguments.y.data);
  params.second = arguments.other.data;
  params.second_row_stride = problem.other.row;
  params.second_member_stride = problem.other.member;
  params.second_operand = has_features ? elements : members;
  launch_members(strategy, problem.dtype, params, [&](const kernels::PackedParams& p, int64_t) {
    WIDE_CHECK_CUDA(kernels::launch_binary_wide(problem.function, problem.activation, problem.dtype,
                                                p, native));
  });
}

}  // namespace wide
