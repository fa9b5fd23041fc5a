// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the hand-rolled kernels.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/linear_vendor_cuda.hpp"
#include "host/linear/linear_wgmma_cuda.hpp"
#include "host/linear/quantized_codes.hpp"
#include "kernels/linear/linear_decoded.hpp"
#include "kernels/linear/linear_gemv.hpp"
#include "kernels/linear/linear_mma.hpp"
#include "kernels/linear/linear_simt.hpp"
#include "kernels/linear/linear_weight_only.hpp"

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

void run_weight_only(const kernels::LinearParams& linear, const LinearProblem& problem,
                     kernels::LinearWeightOnlyTile tile, cudaStream_t stream) {
  const QuantizedWeight weight = linear_quantized_weight(problem);
  const kernels::LinearWeightOnlyParams params{
      linear,
      {quantized_strip_bytes(weight), static_cast<int>(weight.group_size / kQuantizedTile)}};
  WIDE_CHECK_CUDA(
      kernels::launch_linear_weight_only(params, problem.dtype, weight.format, tile, stream));
}

}  // namespace

void run_linear_kernel(const DeviceInfo& device, LinearStrategy strategy, const LinearTiles& tiles,
                       const LinearProblem& problem, const LinearArguments& arguments,
                       const Execution& execution) {
  const CurrentDevice current(device.device.ordinal);
  const auto native = native_stream(execution.stream);
  const LinearStrategy kernel = tiles.kernel;
  const LinearProblem whole =
      strategy == LinearStrategy::shared_input ? as_one_member(problem) : problem;
  kernels::LinearParams params = params_of(whole, arguments);
  if (kernel == LinearStrategy::weight_only) {
    return run_weight_only(params, problem, tiles.weight_only, native);
  }
  if (kernel == LinearStrategy::wgmma && has_linear_maps(whole, arguments)) {
    return run_linear_wgmma(device, tiles.wgmma, whole, params, arguments, native);
  }
  // Where wgmma has no maps, the kernel of its mma tile stands in, tensor_core's or small_m's; for
  // fp8, which neither takes, simt's.
  if (kernel == LinearStrategy::simt || is_fp8(problem.dtype)) {
    WIDE_CHECK_CUDA(
        kernels::launch_linear_simt(params, problem.dtype, *problem.y_dtype, tiles.simt, native));
    return;
  }
  if (kernel == LinearStrategy::gemv) {
    WIDE_CHECK_CUDA(kernels::launch_linear_gemv(params, problem.dtype, native));
    return;
  }
  const kernels::LinearMath math = linear_math(kernel, problem);
  if (tile_m(tiles.mma) >= 64) {
    WIDE_CHECK_CUDA(kernels::launch_linear_tensor_core(params, math, tiles.mma, native));
    return;
  }
  if (tiles.num_planes > 1) {
    params.planes = {static_cast<float*>(execution.workspace.data), tiles.num_planes};
  }
  WIDE_CHECK_CUDA(kernels::launch_linear_small_m(params, math, tiles.mma, native));
  if (tiles.num_planes > 1) {
    const LinearProduct sums{params.planes.sums, Dtype::fp32, sums_strides(whole)};
    finish_linear(whole, arguments, &sums, execution.stream, tiles.num_planes);
  }
}

void run_linear_decoded(const DeviceInfo& device, const LinearTiles& tiles, int64_t weight_bytes,
                        const LinearProblem& problem, const LinearArguments& arguments,
                        const Execution& execution) {
  const CurrentDevice current(device.device.ordinal);
  const QuantizedWeight weight = linear_quantized_weight(problem);
  const kernels::LinearDecodedParams params{
      .blobs = arguments.weight.data,
      .weight = execution.workspace.data,
      .member_bytes = problem.weight.member,
      .strip_bytes = quantized_strip_bytes(weight),
      .num_members = problem.num_members,
      .strips = quantized_strips(weight),
      .tiles = quantized_tiles(weight),
      .tiles_per_group = static_cast<int>(weight.group_size / kQuantizedTile)};
  WIDE_CHECK_CUDA(kernels::launch_linear_decoded(params, problem.dtype, weight.format,
                                                 native_stream(execution.stream)));
  LinearArguments dense = arguments;
  dense.weight.data = execution.workspace.data;
  Execution rest = execution;
  rest.workspace = {advanced(rest.workspace.data, weight_bytes, 1),
                    rest.workspace.bytes - weight_bytes};
  run_linear_kernel(device, tiles.kernel, tiles, as_decoded(problem), dense, rest);
}

void run_linear_members(const DeviceInfo& device, const LinearTiles& tiles,
                        const LinearProblem& problem, const LinearArguments& arguments,
                        const Execution& execution) {
  LinearProblem one = problem;
  one.num_members = 1;
  const Dtype dtype = problem.dtype, y_dtype = *problem.y_dtype;
  const auto advance = [](auto& view, int64_t elements, Dtype of) {
    view.data = advanced(view.data, elements, dtype_bytes(of));
  };
  LinearArguments member = arguments;
  for (int64_t i = 0; i < problem.num_members; ++i) {
    run_linear_kernel(device, tiles.kernel, tiles, one, member, execution);
    advance(member.x, problem.x.member, dtype);
    advance(member.weight, problem.weight.member, is_quantized(problem) ? Dtype::uint8 : dtype);
    advance(member.bias, problem.bias_member_stride, y_dtype);
    advance(member.scale, problem.scale_member_stride, Dtype::fp32);
    advance(member.residual, problem.residual.member, y_dtype);
    advance(member.y, problem.y.member, y_dtype);
  }
}

}  // namespace wide
