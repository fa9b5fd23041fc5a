// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/norm/row_norm.hpp"
#include "kernels/norm/row_norm.hpp"

namespace wide {

namespace {

kernels::RowNormParams params_of(const ChainProblem& problem, const ChainArguments& arguments) {
  kernels::RowNormParams params;
  params.x = arguments.x.data;
  params.bias = arguments.bias.data;
  params.residual = arguments.residual.data;
  params.gamma = arguments.gamma.data;
  params.beta = arguments.beta.data;
  params.y = arguments.y.data;
  params.sum = arguments.sum.data;
  params.num_members = problem.num_members;
  params.rows = problem.rows;
  params.features = problem.features;
  params.x_row_stride = problem.x.row;
  params.x_member_stride = problem.x.member;
  params.residual_row_stride = problem.residual.row;
  params.residual_member_stride = problem.residual.member;
  params.sum_row_stride = problem.sum.row;
  params.sum_member_stride = problem.sum.member;
  params.y_row_stride = problem.y.row;
  params.y_member_stride = problem.y.member;
  params.bias_member_stride = problem.bias_member_stride;
  params.gamma_member_stride = problem.gamma_member_stride;
  params.beta_member_stride = problem.beta_member_stride;
  params.epsilon = problem.epsilon;
  params.activation = problem.activation;
  params.norm = problem.norm;
  if (!problem.id_dtype) return params;
  params.num_members = 1;
  params.owners = {.ids = arguments.ids.data,
                   .is_int64 = *problem.id_dtype == Dtype::int64,
                   .first_id = problem.first_id,
                   .num_members = problem.num_members};
  return params;
}

kernels::RowNormParams member_of(kernels::RowNormParams params, int64_t n, int64_t element_bytes) {
  params.num_members = 1;
  params.x = advanced(params.x, n * params.x_member_stride, element_bytes);
  params.bias = advanced(params.bias, n * params.bias_member_stride, element_bytes);
  params.residual = advanced(params.residual, n * params.residual_member_stride, element_bytes);
  params.gamma = advanced(params.gamma, n * params.gamma_member_stride, element_bytes);
  params.beta = advanced(params.beta, n * params.beta_member_stride, element_bytes);
  params.y = advanced(params.y, n * params.y_member_stride, element_bytes);
  params.sum = advanced(params.sum, n * params.sum_member_stride, element_bytes);
  return params;
}

/// A plain norm has a kernel without branches for options.
auto launcher_of(const ChainProblem& p) {
  const bool is_norm = !p.has_bias && !p.has_residual && !p.has_sum &&
                       p.activation == Activation::none && p.norm != ChainNorm::none;
  if (!is_norm) return kernels::launch_chain_wide;
  return p.norm == ChainNorm::layernorm ? kernels::launch_layernorm_wide
                                        : kernels::launch_rmsnorm_wide;
}

}  // namespace

void run_row_norm_cuda(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                       const ChainArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  const auto launch = [&](const kernels::RowNormParams& params) {
    WIDE_CHECK_CUDA(launcher_of(problem)(problem.dtype, params, native));
  };
  kernels::RowNormParams all = params_of(problem, arguments);
  if (strategy == WideStrategy::wide) return launch(all);
  if (problem.id_dtype) {
    for (int64_t n = kernels::RowOwners::kNobody; n < problem.num_members; ++n) {
      all.owners.only = n;
      launch(all);
    }
    return;
  }
  const int64_t bytes = dtype_bytes(problem.dtype);
  for (int64_t n = 0; n < problem.num_members; ++n) launch(member_of(all, n, bytes));
}

}  // namespace wide
