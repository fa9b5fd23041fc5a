// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/norm/layernorm_run.hpp"
#include "kernels/norm/layernorm_wide.hpp"

namespace wide {

void run_layernorm_cuda(const Context& context, const LayernormProblem& problem,
                        NormStrategy strategy, const LayernormArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = static_cast<cudaStream_t>(stream.native());
  kernels::LayernormParams params;
  params.x = arguments.x.data;
  params.gamma = problem.has_gamma ? arguments.gamma.data : nullptr;
  params.beta = problem.has_beta ? arguments.beta.data : nullptr;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.rows;
  params.features = problem.features;
  params.x_row_stride = problem.x.row;
  params.x_member_stride = problem.x.member;
  params.y_row_stride = problem.y.row;
  params.y_member_stride = problem.y.member;
  params.gamma_member_stride = problem.gamma_member_stride;
  params.beta_member_stride = problem.beta_member_stride;
  params.epsilon = problem.epsilon;
  if (strategy == NormStrategy::wide) {
    WIDE_CHECK_CUDA(kernels::launch_layernorm_wide(problem.dtype, params, native));
    return;
  }
  const int64_t size = dtype_bytes(problem.dtype);
  const auto advance = [&](const void* data, int64_t elements) -> const void* {
    return data == nullptr ? nullptr : static_cast<const char*>(data) + elements * size;
  };
  kernels::LayernormParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.x = advance(params.x, n * params.x_member_stride);
    one.gamma = advance(params.gamma, n * params.gamma_member_stride);
    one.beta = advance(params.beta, n * params.beta_member_stride);
    one.y = static_cast<char*>(params.y) + n * params.y_member_stride * size;
    WIDE_CHECK_CUDA(kernels::launch_layernorm_wide(problem.dtype, one, native));
  }
}

}  // namespace wide
