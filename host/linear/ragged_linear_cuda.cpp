// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Starts the ragged kernels: the table is in place, a call adds its addresses.
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/linear/linear_epilogue_cuda.hpp"
#include "host/linear/ragged_linear_run.hpp"
#include "kernels/linear/ragged_linear.hpp"

namespace wide {

void run_ragged_linear_kernel(const DeviceInfo& device, RaggedLinearStrategy strategy,
                              const RaggedLinearProblem& problem,
                              kernels::RaggedLinearParams params,
                              const RaggedLinearArguments& arguments, Stream stream) {
  const CurrentDevice current(device.device.ordinal);
  params.x = arguments.x.data;
  params.weight = arguments.weight.data;
  params.y = arguments.y.data;
  LinearProblem like;
  like.epilogue = problem.epilogue;
  LinearArguments storages;
  storages.bias = arguments.bias;
  storages.scale = arguments.scale;
  storages.residual = arguments.residual;
  params.epilogue = linear_epilogue_of(like, storages);
  const auto native = native_stream(stream);
  if (strategy == RaggedLinearStrategy::simt) {
    WIDE_CHECK_CUDA(kernels::launch_ragged_linear_simt(params, problem.dtype, native));
    return;
  }
  const kernels::LinearMath math = problem.dtype == Dtype::fp16   ? kernels::LinearMath::fp16
                                   : problem.dtype == Dtype::bf16 ? kernels::LinearMath::bf16
                                                                  : kernels::LinearMath::tf32;
  WIDE_CHECK_CUDA(kernels::launch_ragged_linear_tensor_core(params, math, native));
}

}  // namespace wide
