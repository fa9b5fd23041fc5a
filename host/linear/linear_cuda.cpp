// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the hand-rolled kernels.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/linear/linear_run.hpp"
#include "kernels/linear/linear_mma.hpp"
#include "kernels/linear/linear_simt.hpp"

namespace wide {

namespace {

kernels::LinearParams params_of(const LinearProblem& problem, const LinearArguments& arguments) {
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
  return params;
}

}  // namespace

void run_linear_kernel(const DeviceInfo& device, LinearStrategy strategy,
                       const LinearProblem& problem, const LinearArguments& arguments,
                       Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  const kernels::LinearParams params = params_of(problem, arguments);
  const auto native = static_cast<cudaStream_t>(stream.native());
  if (strategy == LinearStrategy::simt) {
    WIDE_CHECK_CUDA(kernels::launch_linear_simt(params, problem.dtype,
                                                choose_linear_simt_tile(problem), native));
    return;
  }
  const kernels::LinearMmaTile tile = choose_linear_mma_tile(strategy, problem, device);
  const kernels::LinearMath math = linear_math(strategy, problem);
  const bool has_x_first = tile_m(tile) >= 64;
  WIDE_CHECK_CUDA((has_x_first ? kernels::launch_linear_tensor_core
                               : kernels::launch_linear_small_m)(params, math, tile, native));
}

}  // namespace wide
