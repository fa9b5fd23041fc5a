// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "kernels/norm/batchnorm_wide.hpp"

namespace wide {

namespace {

kernels::BatchnormParams params_of(const BatchnormProblem& problem,
                                   const BatchnormArguments& arguments) {
  kernels::BatchnormParams params;
  params.x = arguments.x.data;
  params.gamma = arguments.gamma.data;
  params.beta = arguments.beta.data;
  params.running_mean = static_cast<float*>(arguments.running_mean.data);
  params.running_variance = static_cast<float*>(arguments.running_variance.data);
  params.epsilons = static_cast<const float*>(arguments.epsilon.data);
  params.momenta = static_cast<const float*>(arguments.momentum.data);
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.channels = problem.channels;
  params.batch = problem.batch;
  params.height = problem.height;
  params.width = problem.width;
  params.x_strides = problem.x;
  params.y_strides = problem.y;
  params.gamma_member_stride = problem.gamma_member_stride;
  params.beta_member_stride = problem.beta_member_stride;
  params.mean_member_stride = problem.mean_member_stride;
  params.variance_member_stride = problem.variance_member_stride;
  params.epsilon = problem.epsilon;
  params.momentum = problem.momentum;
  return params;
}

/// Member n alone.
kernels::BatchnormParams member_of(const kernels::BatchnormParams& all, int64_t n,
                                   int64_t element_bytes) {
  const auto advance = [&](auto* data, int64_t elements, int64_t bytes) {
    using Data = decltype(data);
    return data == nullptr ? data
                           : reinterpret_cast<Data>(reinterpret_cast<uintptr_t>(data) +
                                                    static_cast<uintptr_t>(elements * bytes));
  };
  kernels::BatchnormParams one = all;
  one.num_members = 1;
  one.x = advance(all.x, n * all.x_strides.member, element_bytes);
  one.gamma = advance(all.gamma, n * all.gamma_member_stride, element_bytes);
  one.beta = advance(all.beta, n * all.beta_member_stride, element_bytes);
  one.running_mean = advance(all.running_mean, n * all.mean_member_stride, sizeof(float));
  one.running_variance =
      advance(all.running_variance, n * all.variance_member_stride, sizeof(float));
  one.epsilons = advance(all.epsilons, n, sizeof(float));
  one.momenta = advance(all.momenta, n, sizeof(float));
  one.y = advance(all.y, n * all.y_strides.member, element_bytes);
  return one;
}

}  // namespace

void run_batchnorm_cuda(const Context& context, const BatchnormProblem& problem,
                        NormStrategy strategy, const BatchnormArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = static_cast<cudaStream_t>(stream.native());
  const auto launch = [&](const kernels::BatchnormParams& params) {
    if (problem.mode == BatchnormMode::eval) {
      WIDE_CHECK_CUDA(kernels::launch_batchnorm_eval(problem.dtype, params, native));
    } else {
      WIDE_CHECK_CUDA(kernels::launch_batchnorm_train(
          problem.dtype, params, context.info().shared_bytes_per_block, native));
    }
  };
  const kernels::BatchnormParams all = params_of(problem, arguments);
  if (strategy == NormStrategy::wide) return launch(all);
  for (int64_t n = 0; n < problem.num_members; ++n) {
    launch(member_of(all, n, dtype_bytes(problem.dtype)));
  }
}

}  // namespace wide
