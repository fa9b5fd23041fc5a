// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/pointer.hpp"
#include "host/norm/row_norm.hpp"
#include "kernels/norm/row_norm.hpp"

namespace wide {

namespace {

kernels::RowNormParams params_of(const LayernormProblem& problem,
                                 const LayernormArguments& arguments) {
  kernels::RowNormParams params;
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
  return params;
}

kernels::RowNormParams member_of(kernels::RowNormParams params, int64_t n, int64_t element_bytes) {
  params.num_members = 1;
  params.x = advanced(params.x, n * params.x_member_stride, element_bytes);
  params.gamma = advanced(params.gamma, n * params.gamma_member_stride, element_bytes);
  params.beta = advanced(params.beta, n * params.beta_member_stride, element_bytes);
  params.y = advanced(params.y, n * params.y_member_stride, element_bytes);
  return params;
}

}  // namespace

void run_row_norm_cuda(const Context& context, RowNorm norm, const LayernormProblem& problem,
                       WideStrategy strategy, const LayernormArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = static_cast<cudaStream_t>(stream.native());
  const auto launch = [&](const kernels::RowNormParams& params) {
    const auto launcher =
        norm == RowNorm::layernorm ? kernels::launch_layernorm_wide : kernels::launch_rmsnorm_wide;
    WIDE_CHECK_CUDA(launcher(problem.dtype, params, native));
  };
  const kernels::RowNormParams all = params_of(problem, arguments);
  if (strategy == WideStrategy::wide) return launch(all);
  const int64_t bytes = dtype_bytes(problem.dtype);
  for (int64_t n = 0; n < problem.num_members; ++n) launch(member_of(all, n, bytes));
}

}  // namespace wide
