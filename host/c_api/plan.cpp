// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plans, and queries of them.
#include <algorithm>
#include <set>

#include "host/c_api/handles.hpp"
#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/tuning.hpp"
#include "wide/validate_model.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

/// A caller's options for a plan, with the tuning cache that `options` points to.
struct Planned {
  ModelProblem problem;
  ModelOptions options;
  std::shared_ptr<const TuningCache> tuning;
};

ModelOptions model_options_of(const wide_plan_options& given) {
  ModelOptions options = model_options(given.preset == nullptr ? "default" : given.preset);
  if (given.disable_batchnorm_folding != 0) options.folds_batchnorm = false;
  if (given.disable_fusion != 0) options.fuses_epilogues = false;
  if (given.disable_memory_reuse != 0) options.reuses_memory = false;
  if (given.disable_copies != 0) options.moves_data = false;
  if (given.allows_tf32 != 0) options.allows_tf32 = true;
  if (given.drops_out != 0) options.drops_out = true;
  options.channel_layout = layout_of(given.channels, "options.channels");
  require_array(given.shared_parameters, given.num_shared_parameters, "options.shared_parameters");
  for (int64_t i = 0; i < given.num_shared_parameters; ++i) {
    options.shared_parameters.push_back(
        text(given.shared_parameters[i], element_name("options.shared_parameters", i)));
  }
  require_array(given.strategies, given.num_strategies, "options.strategies");
  std::set<std::string> named;
  for (int64_t i = 0; i < given.num_strategies; ++i) {
    const auto name = [&](const char* field) {
      return element_name("options.strategies", i, field);
    };
    const wide_strategy strategy = sized(element_of(given.strategies, i), name("").c_str());
    const std::string primitive = text(strategy.primitive, name(".primitive"));
    WIDE_REQUIRE(named.insert(primitive).second,
                 "options.strategies names \"" + primitive + "\" twice, expected each name once");
    options.strategies.insert_or_assign(  // the preset may name it, too
        primitive, text(strategy.strategy, name(".strategy")));
  }
  return options;
}

Planned planned_of(const wide_plan_options* options) {
  const wide_plan_options given = options_or_default(options, "options");
  Planned planned{{.num_members = given.num_members == 0 ? 1 : given.num_members,
                   .batch = given.batch == 0 ? 1 : given.batch,
                   .batches = batches_of(given.batches, given.num_batches, "options.batches"),
                   .is_routed = given.is_routed != 0,
                   .choices = given.choices == 0 ? 1 : given.choices,
                   .first_id = given.first_id,
                   .num_scores = given.num_scores,
                   .id_dtype = given.id_dtype == 0 ? Dtype::int64
                                                   : dtype_of(given.id_dtype, "options.id_dtype")},
                  model_options_of(given),
                  nullptr};
  if (given.router != nullptr) {
    planned.problem.router =
        named<Router>(given.router, "options.router", kAllRouters, router_name);
  }
  if (given.gate != nullptr) {
    planned.problem.gate =
        named<GateFunction>(given.gate, "options.gate", kAllGateFunctions, gate_function_name);
  }
  if (given.tuning != nullptr) {
    planned.tuning = std::make_shared<const TuningCache>(TuningCache::load(given.tuning));
    planned.options.tuning = planned.tuning.get();
  }
  return planned;
}

/// For queries of the most members, or rows, where all members have as many.
Planned planned_alike(const wide_plan_options* options) {
  Planned planned = planned_of(options);
  WIDE_REQUIRE(planned.problem.batches.empty(),
               "options.batches has " +
                   counted(planned.problem.batches.size(), "entry", "entries") + ", expected none");
  WIDE_REQUIRE(!planned.problem.is_routed,
               "options.is_routed is 1, expected 0: rows are counted for each member");
  return planned;
}

void write_operand(wide_operand* out, const ModelOperand& operand) {
  wide_operand value{};
  value.name = operand.name.c_str();
  value.dtype = static_cast<wide_dtype>(operand.dtype);
  value.rank = operand.shape.rank();
  std::copy(operand.shape.begin(), operand.shape.end(), value.shape);
  value.member_axis = operand.member_axis;
  value.is_stacked = operand.is_stacked ? 1 : 0;
  value.first_rows = operand.first_rows.empty() ? nullptr : operand.first_rows.data();
  value.num_members = operand.num_members;
  write(out, value);
}

ModelOperand operand_of(const wide_operand* operand) {
  const wide_operand given = sized(operand, "operand");
  WIDE_REQUIRE(given.num_members >= 1,
               "operand.num_members is " + std::to_string(given.num_members) + ", expected >= 1");
  ModelOperand own{.name = text(given.name, "operand.name"),
                   .dtype = dtype_of(given.dtype, "operand.dtype"),
                   .shape = dims_of(given.shape, given.rank),
                   .member_axis = given.member_axis,
                   .is_stacked = given.is_stacked != 0,
                   .num_members = given.num_members};
  if (given.first_rows != nullptr)
    own.first_rows.assign(given.first_rows, given.first_rows + given.num_members + 1);
  return own;
}

}  // namespace

wide_status wide_plan_create(const wide_context* context, const wide_graph* graph,
                             const wide_plan_options* options, wide_plan** out) {
  return created(__func__, out, [&] {
    const Planned planned = planned_of(options);
    const ModelPlan plan =
        make_model_plan(required(context, "context").context, required(graph, "graph").graph,
                        planned.problem, planned.options);
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
    value.num_parameters = static_cast<int64_t>(own.parameters().size());
    value.num_steps = static_cast<int64_t>(own.steps().size());
    value.weights_bytes = memory.weights_bytes;
    value.workspace_bytes = memory.workspace_bytes();
    value.input_bytes = memory.input_bytes;
    value.output_bytes = memory.output_bytes;
    value.total_bytes = memory.total_bytes();
    value.activation_bytes = memory.activation_bytes;
    value.scratch_bytes = memory.scratch_bytes;
    value.table_bytes = memory.table_bytes;
    value.host_bytes = memory.host_bytes;
    value.calls_cublas = own.vendor_calls().cublas;
    value.calls_cudnn = own.vendor_calls().cudnn;
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
wide_status wide_operand_member(const wide_operand* operand, const wide_view* view, int64_t index,
                                wide_view* out) {
  return guarded(__func__, [&] {
    write_view(out, member_view(operand_of(operand), view_of(view, "view"), index));
  });
}
wide_status wide_plan_parameter(const wide_plan* plan, int64_t index, wide_parameter_info* out) {
  return guarded(__func__, [&] {
    const ModelParameter& own =
        element(required(plan, "plan").plan.parameters(), index, "parameter");
    write_value(out, own.name, own.dtype, own.shape, own.is_shared);
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
    value.member = step.member;
    value.is_tuned = step.is_tuned ? 1 : 0;
    write(out, value);
  });
}
const char* wide_plan_explain(const wide_plan* plan) {
  return plan == nullptr ? "" : plan->explain.c_str();
}
void wide_plan_destroy(wide_plan* plan) {
  delete plan;
}

wide_status wide_largest_num_members_that_fits(const wide_context* context, const wide_graph* graph,
                                               const wide_plan_options* options, int64_t bytes,
                                               int64_t* out) {
  return guarded(__func__, [&] {
    int64_t& place = required(out, "out");
    const Planned planned = planned_alike(options);
    place = largest_num_members_that_fits(required(context, "context").context,
                                          required(graph, "graph").graph, planned.problem.batch,
                                          bytes, planned.options);
  });
}
wide_status wide_largest_batch_that_fits(const wide_context* context, const wide_graph* graph,
                                         const wide_plan_options* options, int64_t bytes,
                                         int64_t most, int64_t* out) {
  return guarded(__func__, [&] {
    int64_t& place = required(out, "out");
    const Planned planned = planned_alike(options);
    place = largest_batch_that_fits(required(context, "context").context,
                                    required(graph, "graph").graph, planned.problem.num_members,
                                    bytes, most, planned.options);
  });
}

wide_status wide_model_validate(const wide_context* context, const wide_graph* graph,
                                const wide_plan_options* options,
                                const wide_parameters* const* members, int64_t num_members,
                                uint64_t seed, double* out) {
  return guarded(__func__, [&] {
    double& first = required(out, "out");
    const Planned planned = planned_of(options);
    ModelProblem problem = planned.problem;
    problem.num_members = num_members;
    const std::vector<double> differences =
        validate_model(required(context, "context").context, required(graph, "graph").graph,
                       problem, members_of(members, num_members), planned.options, seed);
    std::copy(differences.begin(), differences.end(), &first);
  });
}
