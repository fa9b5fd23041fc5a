// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "kernels/pointwise/ensemble_wide.hpp"

namespace wide {

void run_ensemble_cuda(const Context& context, const EnsembleProblem& problem,
                       WideStrategy strategy, const EnsembleArguments& arguments, void* state,
                       Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::EnsembleParams params;
  params.x = arguments.x.data;
  params.mask = static_cast<const uint8_t*>(problem.has_mask ? arguments.mask.data : nullptr);
  params.y = arguments.y.data;
  params.num_members = problem.num_members;
  params.rows = problem.rows;
  params.features = problem.features;
  params.x_row_stride = problem.x.row;
  params.x_member_stride = problem.x.member;
  params.y_row_stride = problem.y_row_stride;
  params.state = state;
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  for (int64_t n = 0; n < problem.num_members; n += at_once) {
    params.first = n;
    params.last = n + at_once;
    WIDE_CHECK_CUDA(kernels::launch_ensemble_wide(problem.function, problem.dtype, params, native));
  }
}

}  // namespace wide
