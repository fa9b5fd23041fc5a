// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/packed_params_cuda.hpp"
#include "kernels/pointwise/dropout_wide.hpp"

namespace wide {

void run_dropout_cuda(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                      const DropoutArguments& arguments, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::DropoutParams params;
  params.packed = packed_params(rows_of(problem), arguments.x.data, arguments.y.data);
  params.seed_member_stride = problem.seed_member_stride;
  params.probability_member_stride = problem.probability_member_stride;
  const auto* seeds = static_cast<const int64_t*>(arguments.seeds.data);
  const auto* probabilities = static_cast<const float*>(arguments.probabilities.data);
  launch_members(strategy, problem.dtype, params.packed,
                 [&](const kernels::PackedParams& packed, int64_t first_member) {
                   kernels::DropoutParams p = params;
                   p.packed = packed;
                   p.seeds = seeds + first_member * p.seed_member_stride;
                   p.probabilities = probabilities + first_member * p.probability_member_stride;
                   WIDE_CHECK_CUDA(kernels::launch_dropout_wide(problem.dtype, p, native));
                 });
}

}  // namespace wide
