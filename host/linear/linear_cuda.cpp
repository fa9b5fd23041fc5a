// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the hand-rolled kernel.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/linear/linear_run.hpp"
#include "kernels/linear/linear_simt.hpp"

namespace wide {

void run_linear_simt(const DeviceInfo& device, const LinearProblem& problem,
                     const LinearArguments& arguments, Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  kernels::LinearParams params{};
  params.x = arguments.x.data;
  params.weight = arguments.weight.data;
  params.bias = problem.epilogue.has_bias ? arguments.bias.data : nullptr;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.m = problem.batch;
  params.n = problem.out_features;
  params.k = problem.in_features;
  params.x_strides = problem.x;
  params.weight_strides = problem.weight;
  params.y_strides = problem.y;
  params.bias_member_stride = problem.bias_member_stride;
  params.activation = problem.epilogue.activation;
  WIDE_CHECK_CUDA(kernels::launch_linear_simt(params, problem.dtype,
                                              choose_linear_simt_tile(problem),
                                              static_cast<cudaStream_t>(stream.native())));
}

}  // namespace wide
