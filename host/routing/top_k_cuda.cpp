// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/routing/top_k_run.hpp"
#include "kernels/routing/top_k_wide.hpp"

namespace wide {

void run_top_k_cuda(const Context& context, const TopKProblem& problem, WideStrategy strategy,
                    const TopKArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::TopKParams params;
  params.scores = arguments.scores.data;
  params.ids = arguments.ids.data;
  params.gates = problem.has_gates ? static_cast<float*>(arguments.gates.data) : nullptr;
  params.rows = problem.rows;
  params.num_members = problem.num_members;
  params.choices = problem.choices;
  params.scores_row_stride = problem.scores_row_stride;
  params.id_bytes = static_cast<int>(dtype_bytes(problem.id_dtype));
  params.gate = problem.gate;
  const int64_t at_once = strategy == WideStrategy::wide ? problem.choices : 1;
  for (int64_t k = 0; k < problem.choices; k += at_once) {
    params.first = k;
    params.last = k + at_once;
    WIDE_CHECK_CUDA(kernels::launch_top_k(problem.dtype, params, native));
  }
}

}  // namespace wide
