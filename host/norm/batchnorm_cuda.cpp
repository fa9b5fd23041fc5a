// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/channel_norm_cuda.hpp"
#include "kernels/norm/batchnorm_wide.hpp"

namespace wide {

namespace {

kernels::BatchnormParams params_of(const BatchnormProblem& problem,
                                   const BatchnormArguments& arguments) {
  kernels::BatchnormParams params;
  set_channel_params(params, problem, arguments);
  params.running_mean = static_cast<float*>(arguments.running_mean.data);
  params.running_variance = static_cast<float*>(arguments.running_variance.data);
  params.epsilons = static_cast<const float*>(arguments.epsilon.data);
  params.momenta = static_cast<const float*>(arguments.momentum.data);
  params.mean_member_stride = problem.mean_member_stride;
  params.variance_member_stride = problem.variance_member_stride;
  params.momentum = problem.momentum;
  return params;
}

kernels::BatchnormParams member_of(kernels::BatchnormParams params, int64_t n, Dtype dtype) {
  select_member(params, n, dtype);
  params.running_mean += n * params.mean_member_stride;
  params.running_variance += n * params.variance_member_stride;
  params.epsilons = advanced(params.epsilons, n, sizeof(float));
  params.momenta = advanced(params.momenta, n, sizeof(float));
  return params;
}

}  // namespace

void run_batchnorm_cuda(const Context& context, const BatchnormProblem& problem,
                        WideStrategy strategy, const BatchnormArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  const auto launch = [&](const kernels::BatchnormParams& params) {
    if (problem.mode == BatchnormMode::eval) {
      WIDE_CHECK_CUDA(kernels::launch_batchnorm_eval(problem.dtype, params, native));
    } else {
      WIDE_CHECK_CUDA(kernels::launch_batchnorm_train(
          problem.dtype, params, context.info().shared_bytes_per_block, native));
    }
  };
  const kernels::BatchnormParams all = params_of(problem, arguments);
  if (strategy != WideStrategy::sequential) return launch(all);
  for (int64_t n = 0; n < problem.num_members; ++n) launch(member_of(all, n, problem.dtype));
}

}  // namespace wide
