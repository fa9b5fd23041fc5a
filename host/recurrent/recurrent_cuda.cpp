// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/recurrent/recurrent_problem.hpp"
#include "host/recurrent/recurrent_run.hpp"
#include "host/recurrent/recurrent_strategy.hpp"
#include "kernels/recurrent/recurrent.hpp"

namespace wide {

void run_recurrent_cell_cuda(const DeviceInfo& device, const kernels::RecurrentCellParams& step,
                             Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  WIDE_CHECK_CUDA(kernels::launch_recurrent_cell(step, native_stream(stream)));
}

void run_recurrent_fused(const DeviceInfo& device, const RecurrentProblem& p,
                         const RecurrentArguments& a, const void* input_gates, Stream stream) {
  const kernels::RecurrentMath math = recurrent_math(p.dtype);
  kernels::RecurrentFusedParams params{};
  params.cell = p.cell;
  params.is_reversed = p.is_reversed;
  params.input_gates = input_gates;
  params.weight = a.hidden_weight.data;
  params.bias = a.hidden_bias.data;
  params.first_hidden = a.first_hidden.data;
  params.first_cell = static_cast<const float*>(a.first_cell.data);
  params.last_cell = static_cast<float*>(a.last_cell.data);
  params.y = a.y.data;
  params.input_strides = recurrent_gate_strides(p, p.num_members);
  params.y_strides = p.y;
  params.weight_strides = p.hidden_weight;
  params.first_hidden_strides = p.first_hidden;
  params.first_cell_strides = p.first_cell;
  params.last_cell_strides = p.last_cell;
  params.bias_member_stride = p.hidden_bias_member_stride;
  params.num_members = p.num_members;
  params.batch = p.batch;
  params.steps = p.steps;
  params.hidden = static_cast<int32_t>(p.hidden);
  params.shape = kernels::recurrent_fused_shape(p.cell, math, params.hidden);
  const CurrentDevice current(device.device.ordinal);
  const auto native = native_stream(stream);
  switch (math) {
    case kernels::RecurrentMath::fp16:
      WIDE_CHECK_CUDA(kernels::launch_recurrent_fused_fp16(params, native));
      break;
    case kernels::RecurrentMath::bf16:
      WIDE_CHECK_CUDA(kernels::launch_recurrent_fused_bf16(params, native));
      break;
    case kernels::RecurrentMath::fp32:
      WIDE_CHECK_CUDA(kernels::launch_recurrent_fused_fp32(params, native));
      break;
  }
}

}  // namespace wide
