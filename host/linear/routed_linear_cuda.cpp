// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the routed kernels: a call's addresses are all that they need.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/tensor_map.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_wgmma_cuda.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_run.hpp"
#include "kernels/linear/routed_linear.hpp"
#include "kernels/linear/routed_linear_wgmma.hpp"

namespace wide {

namespace {

kernels::RoutedLinearParams routed_params_of(const RoutedLinearProblem& problem,
                                             const RoutedLinearArguments& arguments) {
  kernels::RoutedLinearParams params{};
  kernels::LinearParams& linear = params.linear;
  linear.x = arguments.x.data;
  linear.weight = arguments.weight.data;
  linear.y = arguments.y.data;
  linear.num_members = problem.num_members;
  linear.m = problem.num_rows, linear.n = problem.out_features, linear.k = problem.in_features;
  linear.x_strides.row = problem.x_row_stride;
  linear.weight_strides = problem.weight;
  linear.y_strides.row = problem.y_row_stride;
  LinearProblem like;
  like.epilogue = problem.epilogue;
  like.bias_member_stride = problem.bias_member_stride;
  like.scale_member_stride = problem.scale_member_stride;
  like.residual.row = problem.residual_row_stride;
  LinearArguments operands;
  operands.bias = arguments.bias;
  operands.scale = arguments.scale;
  operands.residual = arguments.residual;
  linear.epilogue = linear_epilogue_of(like, operands);
  params.first_rows = static_cast<const int32_t*>(arguments.first_rows.data);
  params.order = static_cast<const int32_t*>(arguments.order.data);
  params.gates = static_cast<const float*>(arguments.gates.data);
  params.choices = static_cast<int32_t>(problem.choices);
  params.gathers = problem.gathers, params.scatters = problem.scatters;
  params.member = -1;
  return params;
}

cudaError_t launch_weight_only(const kernels::RoutedLinearParams& params,
                               const RoutedLinearProblem& problem, cudaStream_t stream) {
  const QuantizedWeight weight = linear_quantized_weight(problem);
  return kernels::launch_routed_linear_weight_only(
      {params,
       {quantized_strip_bytes(weight), static_cast<int>(weight.group_size / kQuantizedTile)}},
      problem.dtype, weight.format, stream);
}

void run_wgmma(const DeviceInfo& device, const RoutedLinearProblem& problem,
               const kernels::RoutedLinearParams& params, cudaStream_t stream) {
  const kernels::LinearWgmmaTile tile = choose_routed_wgmma_tile(problem, device);
  kernels::RoutedWgmmaParams wgmma{};
  wgmma.routed = params;
  wgmma.num_multiprocessors = device.num_multiprocessors;
  encode_linear_rows({params.linear.weight, problem.dtype, problem.in_features,
                      problem.out_features, problem.num_members, problem.weight,
                      kernels::kWgmmaTileBytes / dtype_bytes(problem.dtype), tile_n(tile)},
                     wgmma.weight);
  WIDE_CHECK_CUDA(kernels::launch_routed_linear_wgmma(wgmma, problem.dtype, tile, stream));
}

/// Whether x is copied 16 bytes at a time and the weight has a map: there is something to multiply.
bool is_for_wgmma(const RoutedLinearProblem& problem, const RoutedLinearArguments& arguments) {
  return problem.in_features > 0 && is_on_16_bytes(arguments.x.data) &&
         is_on_16_bytes(arguments.weight.data);
}

}  // namespace

void run_routed_linear_cuda(const DeviceInfo& device, RoutedLinearStrategy strategy,
                            const RoutedLinearProblem& problem,
                            const RoutedLinearArguments& arguments, Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  const auto native = native_stream(stream);
  kernels::RoutedLinearParams params = routed_params_of(problem, arguments);
  const auto multiply = [&] {
    WIDE_CHECK_CUDA(is_quantized(problem)
                        ? launch_weight_only(params, problem, native)
                        : kernels::launch_routed_linear_simt(params, problem.dtype, native));
  };
  if (strategy == RoutedLinearStrategy::simt || strategy == RoutedLinearStrategy::weight_only) {
    return multiply();
  }
  if (strategy == RoutedLinearStrategy::sequential) {
    for (params.member = 0; params.member <= problem.num_members; ++params.member) multiply();
    return;
  }
  if (strategy == RoutedLinearStrategy::wgmma && is_for_wgmma(problem, arguments)) {
    return run_wgmma(device, problem, params, native);
  }
  const kernels::LinearMath math = problem.dtype == Dtype::fp16   ? kernels::LinearMath::fp16
                                   : problem.dtype == Dtype::bf16 ? kernels::LinearMath::bf16
                                                                  : kernels::LinearMath::tf32;
  WIDE_CHECK_CUDA(kernels::launch_routed_linear_tensor_core(params, math, native));
}

}  // namespace wide
