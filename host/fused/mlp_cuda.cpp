// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/fused/mlp_run.hpp"
#include "host/fused/mlp_strategy.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/fused/routed_mlp_run.hpp"
#include "kernels/fused/mlp_fused.hpp"

namespace wide {

namespace {

void launch_mlp_fused(const DeviceInfo& device, kernels::MlpMath math,
                      const kernels::MlpFusedParams& params, Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  const auto native = native_stream(stream);
  switch (math) {
    case kernels::MlpMath::fp16:
      WIDE_CHECK_CUDA(kernels::launch_mlp_fused_fp16(params, native));
      break;
    case kernels::MlpMath::bf16:
      WIDE_CHECK_CUDA(kernels::launch_mlp_fused_bf16(params, native));
      break;
    case kernels::MlpMath::tf32:
      WIDE_CHECK_CUDA(kernels::launch_mlp_fused_tf32(params, native));
      break;
    case kernels::MlpMath::fp32:
      WIDE_CHECK_CUDA(kernels::launch_mlp_fused_fp32(params, native));
      break;
  }
}

}  // namespace

void run_mlp_fused(const DeviceInfo& device, const MlpProblem& problem,
                   const kernels::MlpFusedNet& net, const kernels::MlpFusedShape& shape,
                   const MlpArguments& arguments, Stream stream) {
  kernels::MlpFusedParams params{};
  params.x = arguments.x.data;
  params.weights = arguments.weights.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.batch;
  params.x_strides = problem.x;
  params.y_strides = problem.y;
  params.weights_member_bytes = problem.weights_member_stride * dtype_bytes(problem.dtype);
  params.net = net;
  params.shape = shape;
  params.activation = problem.activation;
  params.last_activation = problem.last_activation;
  launch_mlp_fused(device, mlp_math(problem.dtype, problem.allow_tf32), params, stream);
}

void run_routed_mlp_fused(const DeviceInfo& device, const RoutedMlpProblem& problem,
                          const kernels::MlpFusedNet& net, const RoutedMlpShape& shape,
                          const RoutedMlpArguments& arguments, Stream stream) {
  kernels::MlpFusedParams params{};
  params.x = arguments.x.data;
  params.weights = arguments.weights.data;
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.num_rows;
  params.x_strides.row = problem.x_row_stride;
  params.y_strides.row = problem.y_row_stride;
  params.routing = {.first_rows = static_cast<const int32_t*>(arguments.first_rows.data),
                    .order = static_cast<const int32_t*>(arguments.order.data),
                    .gates = static_cast<const float*>(arguments.gates.data),
                    .choices = static_cast<int32_t>(problem.choices),
                    .tile = shape.tile,
                    .gathers = problem.gathers,
                    .scatters = problem.scatters};
  params.weights_member_bytes = problem.weights_member_stride * dtype_bytes(problem.dtype);
  params.net = net;
  params.shape = shape.block;
  params.activation = problem.activation;
  params.last_activation = problem.last_activation;
  launch_mlp_fused(device, mlp_math(problem.dtype, problem.allow_tf32), params, stream);
}

}  // namespace wide
