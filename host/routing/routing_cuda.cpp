// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/routing/routing_run.hpp"
#include "kernels/routing/routing_wide.hpp"

namespace wide {

void run_routing_cuda(const Context& context, const RoutingProblem& problem, WideStrategy strategy,
                      const RoutingArguments& arguments, void* counts, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(stream);
  kernels::RoutingParams params;
  params.ids = arguments.ids.data;
  params.id_bytes = static_cast<int>(dtype_bytes(problem.id_dtype));
  params.counts = static_cast<int32_t*>(counts);
  params.first_rows = static_cast<int32_t*>(arguments.first_rows.data);
  params.order = static_cast<int32_t*>(arguments.order.data);
  params.first_id = problem.first_id;
  params.num_rows = problem.num_rows;
  params.num_members = params.num_ids = problem.num_members;
  if (strategy == WideStrategy::wide || problem.num_members == 1) {
    WIDE_CHECK_CUDA(kernels::launch_routing(params, native));
    return;
  }
  kernels::RoutingParams one = params;
  one.num_members = one.num_ids = 1;
  one.places_rest = false;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.first_id = params.first_id + n;
    one.first_rows = params.first_rows + n;
    one.begin = n == 0 ? nullptr : one.first_rows;  // the member before has written it
    WIDE_CHECK_CUDA(kernels::launch_routing(one, native));
  }
  kernels::RoutingParams rest = params;
  rest.num_members = 1;
  rest.is_rest = true;
  rest.places_rest = false;
  rest.first_rows = nullptr;
  rest.begin = params.first_rows + problem.num_members;
  WIDE_CHECK_CUDA(kernels::launch_routing(rest, native));
}

}  // namespace wide
