// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/norm/channel_norm_cuda.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "kernels/norm/groupnorm_wide.hpp"

namespace wide {

void run_groupnorm_cuda(const Context& context, const GroupnormProblem& problem,
                        WideStrategy strategy, const GroupnormArguments& arguments,
                        const Execution& execution) {
  const CurrentDevice current(context.device().ordinal);
  const auto launch = [&](const kernels::GroupnormParams& params) {
    if (problem.layout == ChannelLayout::channels_last) {
      WIDE_CHECK_CUDA(kernels::launch_groupnorm_last(
          problem.dtype, params, execution.workspace.data, native_stream(execution.stream)));
      return;
    }
    WIDE_CHECK_CUDA(kernels::launch_groupnorm_wide(problem.dtype, params,
                                                   context.info().shared_bytes_per_block,
                                                   native_stream(execution.stream)));
  };
  kernels::GroupnormParams all;
  set_channel_params(all, problem, arguments);
  all.groups = problem.groups;
  if (strategy == WideStrategy::wide) return launch(all);
  for (int64_t n = 0; n < problem.num_members; ++n) {
    kernels::GroupnormParams one = all;
    select_member(one, n, problem.dtype);
    launch(one);
  }
}

}  // namespace wide
