// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routing's verbs: validate, choose, launch.
#include "wide/routing.hpp"

#include <utility>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/wide_plan.hpp"
#include "host/core/workspace.hpp"
#include "host/routing/routing_run.hpp"
#include "kernels/routing/routing_chunks.hpp"

namespace wide {

namespace {

constexpr std::string_view kRoutingName = "routing";

void require_legal(const RoutingProblem& p) {
  constexpr int64_t kMost = INT32_MAX;
  require_at_least(kRoutingName, "num_members", p.num_members, 1);
  require_at_least(kRoutingName, "num_rows", p.num_rows, 0);
  require_at_least(kRoutingName, "first_id", p.first_id, 0);
  for (const auto& [name, value] :
       {std::pair{"num_members", p.num_members}, {"num_rows", p.num_rows}}) {
    WIDE_REQUIRE(value <= kMost, name_of(kRoutingName, name) + " is " + std::to_string(value) +
                                     ", expected up to 2^31 - 1: rows are counted in int32");
  }
  WIDE_REQUIRE(p.first_id <= INT64_MAX - p.num_members,
               "routing: first_id is " + std::to_string(p.first_id) +
                   ", expected first_id + num_members in 64 bits, num_members is " +
                   std::to_string(p.num_members));
  WIDE_REQUIRE(
      p.id_dtype == Dtype::int32 || p.id_dtype == Dtype::int64,
      "routing: id_dtype is " + std::string(dtype_name(p.id_dtype)) + ", expected int32 or int64");
}

void require_contiguous(std::string_view argument, const ConstTensorView& view) {
  WIDE_REQUIRE(view.is_contiguous(), name_of(kRoutingName, argument) + " has strides " +
                                         to_string(view.strides) + ", expected contiguous ones");
}

constexpr auto kRoutingFields = [](const auto& same, const RoutingProblem& got,
                                   const RoutingProblem& plan) {
  same("num_rows", got.num_rows, plan.num_rows);
  same("num_members", got.num_members, plan.num_members);
  same("id_dtype", got.id_dtype, plan.id_dtype);
  same("first_id", got.first_id, plan.first_id);
};

}  // namespace

LaunchRefusal routing_launches(const RoutingProblem& p, const DeviceInfo& device) {
  const int64_t bytes = kernels::routing_chunks(p.num_members, p.num_rows).shared_bytes() +
                        kernels::kRoutingStaticBytes;
  if (bytes <= device.shared_bytes_per_block) return {};
  return {"num_members is " + std::to_string(p.num_members) + ", whose counters take " +
              std::to_string(bytes) + " bytes of shared memory, a block has up to " +
              std::to_string(device.shared_bytes_per_block),
          ""};
}

std::string problem_key(const RoutingProblem& complete) {
  return key_of_fields(complete, kRoutingFields);
}
TuningKey tuning_key(const RoutingProblem& problem) {
  require_legal(problem);
  return {std::string(kRoutingName), problem_key(problem)};
}

RoutingProblem describe_routing(const RoutingArguments& a, const RoutingProblem& like) {
  WIDE_REQUIRE(
      a.ids.rank() == 1 || a.ids.rank() == 2,
      "routing: ids is " + to_string(a.ids.shape) + ", expected [num_rows] or [batch, choices]");
  WIDE_REQUIRE(a.first_rows.rank() == 1 && a.first_rows.shape[0] >= 2,
               "routing: first_rows is " + to_string(a.first_rows.shape) +
                   ", expected [num_members + 1], of one member at least");
  RoutingProblem p;
  p.num_members = a.first_rows.shape[0] - 1;
  p.num_rows = a.ids.num_elements();
  p.first_id = like.first_id;
  p.id_dtype = a.ids.dtype;
  require_legal(p);
  require_shape(kRoutingName, "order", a.order, "[num_rows]", {p.num_rows});
  require_dtype(kRoutingName, "first_rows", a.first_rows, Dtype::int32);
  require_dtype(kRoutingName, "order", a.order, Dtype::int32);
  require_device(kRoutingName, "ids", a.ids, a.order.device);
  require_device(kRoutingName, "first_rows", a.first_rows, a.order.device);
  require_contiguous("ids", a.ids);
  require_contiguous("first_rows", a.first_rows);
  require_contiguous("order", a.order);
  require_own_memory(kRoutingName, "order", a.order, "ids", a.ids);
  require_own_memory(kRoutingName, "first_rows", a.first_rows, "ids", a.ids);
  require_own_memory(kRoutingName, "order", a.order, "first_rows", a.first_rows);
  return p;
}

namespace {

/// How many rows of each member every chunk has.
int64_t count_bytes(const Context& context, const RoutingProblem& p, WideStrategy strategy) {
  if (context.device().type == DeviceType::cpu) {
    return aligned_bytes(routing_cpu_count_bytes(p, strategy));
  }
  const int64_t members = strategy == WideStrategy::wide ? p.num_members : 1;
  return aligned_bytes(kernels::routing_chunks(members, p.num_rows).count_bytes());
}

}  // namespace

template <>
struct PlanState<RoutingProblem> : WideState<RoutingProblem> {};
template class PrimitivePlan<RoutingProblem>;

RoutingPlan make_routing_plan(const Context& context, const RoutingProblem& problem,
                              const PlanOptions& options) {
  require_legal(problem);
  RoutingPlan::State state{make_wide_state(kRoutingName, context, problem, options,
                                           routing_launches(problem, context.info()))};
  state.workspace_bytes = count_bytes(context, problem, state.choice.strategy);
  return RoutingPlan(std::make_shared<const RoutingPlan::State>(std::move(state)));
}

void RoutingPlan::run(const RoutingArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kRoutingName, "order", arguments.order, s.context.device());
  require_plan_dtype(kRoutingName, "ids", arguments.ids, s.problem.id_dtype);
  require_plan_rows(kRoutingName, "ids", arguments.ids, 1, "num_rows", s.problem.num_rows);
  require_same_problem(kRoutingName, describe_routing(arguments, s.problem), s.problem,
                       kRoutingFields);
  require_workspace(kRoutingName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  void* counts = execution.workspace.data;
  if (s.context.device().type == DeviceType::cpu) {
    run_routing_cpu(s.context, s.problem, s.choice.strategy, arguments, counts);
  } else {
    run_routing_cuda(s.context, s.problem, s.choice.strategy, arguments, counts, execution.stream);
  }
}

}  // namespace wide
