// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the hand-rolled kernels.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/tensor_map.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_run.hpp"
#include "kernels/linear/linear_gemv.hpp"
#include "kernels/linear/linear_mma.hpp"
#include "kernels/linear/linear_simt.hpp"
#include "kernels/linear/linear_wgmma.hpp"

namespace wide {

static_assert(kMaxGemvBatch == kernels::kMaxGemvRows);

kernels::LinearEpilogue linear_epilogue_of(const LinearProblem& problem,
                                           const LinearArguments& arguments) {
  const Epilogue& epilogue = problem.epilogue;
  kernels::LinearEpilogue params{};
  params.bias = arguments.bias.data;
  params.scale = static_cast<const float*>(arguments.scale.data);
  params.residual = arguments.residual.data;
  params.bias_member_stride = problem.bias_member_stride;
  params.scale_member_stride = problem.scale_member_stride;
  params.residual_strides = problem.residual;
  params.alpha = epilogue.alpha;
  params.activation = epilogue.activation;
  params.scale_is_per_output = epilogue.scale == OutputScale::per_output;
  params.residual_is_activated = epilogue.residual == Residual::before_activation;
  return params;
}

namespace {

kernels::LinearParams params_of(const LinearProblem& problem, const LinearArguments& arguments) {
  kernels::LinearParams params{};
  params.x = arguments.x.data;
  params.weight = arguments.weight.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.m = problem.batch;
  params.n = problem.out_features;
  params.k = problem.in_features;
  params.x_strides = problem.x;
  params.weight_strides = problem.weight;
  params.y_strides = problem.y;
  params.epilogue = linear_epilogue_of(problem, arguments);
  return params;
}

/// Where an address is no multiple of 16 bytes, or there is nothing to multiply, tensor_core's
/// kernel stands in.
bool has_tensor_maps(const kernels::LinearParams& params, const LinearProblem& problem) {
  constexpr uintptr_t kAlignment = 16;
  return problem.in_features > 0 && reinterpret_cast<uintptr_t>(params.x) % kAlignment == 0 &&
         reinterpret_cast<uintptr_t>(params.weight) % kAlignment == 0;
}

/// {k, rows, members}, in boxes of `box_rows` rows of one member.
CUtensorMap rows_map(const void* data, const LinearProblem& problem, const RowStrides& strides,
                     int64_t rows, int64_t members, int64_t box_rows) {
  const int64_t vector = 16 / dtype_bytes(problem.dtype);
  // A stride that nobody takes has to be one all the same.
  const int64_t row = rows > 1 ? strides.row : (problem.in_features + vector - 1) / vector * vector;
  const int64_t member = members > 1 ? strides.member : row;
  return encode_tile_map({.data = data,
                          .dtype = problem.dtype,
                          .rank = 3,
                          .extent = {problem.in_features, rows, members},
                          .stride = {1, row, member},
                          .box = {kernels::kWgmmaTileK, box_rows, 1},
                          .swizzle = TileSwizzle::bytes_128});
}

void run_wgmma(const kernels::LinearParams& linear, const LinearProblem& problem,
               const DeviceInfo& device, cudaStream_t stream) {
  const kernels::LinearWgmmaTile tile = choose_linear_wgmma_tile(problem, device);
  kernels::LinearWgmmaParams params{};
  params.linear = linear;
  params.num_multiprocessors = device.num_multiprocessors;
  params.x = rows_map(linear.x, problem, problem.x, problem.batch,
                      linear.x_strides.member == 0 ? 1 : problem.num_members, tile_m(tile));
  params.weight = rows_map(linear.weight, problem, problem.weight, problem.out_features,
                           problem.num_members, tile_n(tile));
  WIDE_CHECK_CUDA(kernels::launch_linear_wgmma(params, problem.dtype, tile, stream));
}

}  // namespace

void run_linear_kernel(const DeviceInfo& device, LinearStrategy strategy,
                       const LinearProblem& problem, const LinearArguments& arguments,
                       Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  const auto native = static_cast<cudaStream_t>(stream.native());
  const LinearStrategy kernel = linear_kernel_of(strategy, problem, device);
  const LinearProblem whole =
      strategy == LinearStrategy::shared_input ? as_one_member(problem) : problem;
  const kernels::LinearParams params = params_of(whole, arguments);
  if (kernel == LinearStrategy::simt) {
    WIDE_CHECK_CUDA(kernels::launch_linear_simt(params, problem.dtype,
                                                choose_linear_simt_tile(problem), native));
    return;
  }
  if (kernel == LinearStrategy::gemv) {
    WIDE_CHECK_CUDA(kernels::launch_linear_gemv(params, problem.dtype, native));
    return;
  }
  if (kernel == LinearStrategy::wgmma && has_tensor_maps(params, whole)) {
    run_wgmma(params, whole, device, native);
    return;
  }
  // By the member's problem, also where it is part of a wider one: so are its sums' orders.
  const kernels::LinearMmaTile tile = choose_linear_mma_tile(kernel, problem, device);
  const kernels::LinearMath math = linear_math(kernel, problem);
  const bool has_x_first = tile_m(tile) >= 64;
  WIDE_CHECK_CUDA((has_x_first ? kernels::launch_linear_tensor_core
                               : kernels::launch_linear_small_m)(params, math, tile, native));
}

}  // namespace wide
