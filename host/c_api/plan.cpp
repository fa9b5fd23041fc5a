// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plans, and what they say of themselves.
#include <algorithm>

#include "host/c_api/handles.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

ModelOptions model_options_of(const wide_plan_options& given) {
  ModelOptions options = model_options(given.preset == nullptr ? "default" : given.preset);
  if (given.allows_tf32 != 0) options.allows_tf32 = true;
  if (given.drops_out != 0) options.drops_out = true;
  require_array(given.shared_parameters, given.num_shared_parameters, "options.shared_parameters");
  for (int64_t i = 0; i < given.num_shared_parameters; ++i) {
    options.shared_parameters.push_back(
        text(given.shared_parameters[i], "an element of options.shared_parameters"));
  }
  require_array(given.strategies, given.num_strategies, "options.strategies");
  for (int64_t i = 0; i < given.num_strategies; ++i) {
    const wide_strategy& strategy = sized(&given.strategies[i], "options.strategies");
    options.strategies.insert_or_assign(text(strategy.primitive, "options.strategies.primitive"),
                                        text(strategy.strategy, "options.strategies.strategy"));
  }
  return options;
}

ModelProblem problem_of(const wide_plan_options& given) {
  return {.num_members = given.num_members == 0 ? 1 : given.num_members,
          .batch = given.batch == 0 ? 1 : given.batch};
}

/// One of a plan's operands or steps.
template <class T>
const T& element(std::span<const T> all, int64_t index, const char* what) {
  const auto count = static_cast<int64_t>(all.size());
  WIDE_REQUIRE(index >= 0 && index < count, std::string(what) + " is " + std::to_string(index) +
                                                ", expected one in [0, " + std::to_string(count) +
                                                ")");
  return all[static_cast<size_t>(index)];
}

void write_operand(wide_operand* out, const ModelOperand& operand) {
  wide_operand value{};
  value.name = operand.name.c_str();
  value.dtype = static_cast<wide_dtype>(operand.dtype);
  value.rank = operand.shape.rank();
  std::copy(operand.shape.begin(), operand.shape.end(), value.shape);
  value.member_axis = operand.member_axis;
  value.is_stacked = operand.is_stacked ? 1 : 0;
  write(out, value);
}

}  // namespace

wide_status wide_plan_create(const wide_context* context, const wide_graph* graph,
                             const wide_plan_options* options, wide_plan** out) {
  return created(__func__, out, [&] {
    const wide_plan_options given = options_or_default(options, "options");
    const ModelPlan plan =
        make_model_plan(required(context, "context").context, required(graph, "graph").graph,
                        problem_of(given), model_options_of(given));
    return wide_plan{plan, plan.explain()};
  });
}

wide_status wide_plan_query(const wide_plan* plan, wide_plan_info* out) {
  return guarded(__func__, [&] {
    const ModelPlan& own = required(plan, "plan").plan;
    const ModelMemory& memory = own.memory();
    wide_plan_info value{};
    value.num_members = own.problem().num_members;
    value.batch = own.problem().batch;
    value.num_inputs = static_cast<int64_t>(own.inputs().size());
    value.num_outputs = static_cast<int64_t>(own.outputs().size());
    value.num_steps = static_cast<int64_t>(own.steps().size());
    value.weights_bytes = memory.weights_bytes;
    value.workspace_bytes = memory.workspace_bytes();
    value.input_bytes = memory.input_bytes;
    value.output_bytes = memory.output_bytes;
    value.total_bytes = memory.total_bytes();
    write(out, value);
  });
}

wide_status wide_plan_input(const wide_plan* plan, int64_t index, wide_operand* out) {
  return guarded(__func__, [&] {
    write_operand(out, element(required(plan, "plan").plan.inputs(), index, "input"));
  });
}
wide_status wide_plan_output(const wide_plan* plan, int64_t index, wide_operand* out) {
  return guarded(__func__, [&] {
    write_operand(out, element(required(plan, "plan").plan.outputs(), index, "output"));
  });
}
wide_status wide_plan_step(const wide_plan* plan, int64_t index, wide_step* out) {
  return guarded(__func__, [&] {
    const ModelStep& step = element(required(plan, "plan").plan.steps(), index, "step");
    wide_step value{};
    value.node = step.node.c_str();
    value.primitive = step.primitive.c_str();
    value.strategy = step.strategy.c_str();
    value.explain = step.explain.c_str();
    value.num_members = step.num_members;
    value.scratch_bytes = step.scratch_bytes;
    write(out, value);
  });
}
const char* wide_plan_explain(const wide_plan* plan) {
  return plan == nullptr ? "" : plan->explain.c_str();
}
void wide_plan_destroy(wide_plan* plan) {
  delete plan;
}

wide_status wide_largest_n_that_fits(const wide_context* context, const wide_graph* graph,
                                     const wide_plan_options* options, int64_t bytes,
                                     int64_t* out) {
  return guarded(__func__, [&] {
    int64_t& place = required(out, "out");
    const wide_plan_options given = options_or_default(options, "options");
    place =
        largest_n_that_fits(required(context, "context").context, required(graph, "graph").graph,
                            problem_of(given).batch, bytes, model_options_of(given));
  });
}
