// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A model: a plan's parameters in place, and its run.
#include "wide/model.hpp"

#include <algorithm>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/model/member_values.hpp"
#include "host/model/members.hpp"
#include "host/model/model_state.hpp"
#include "host/model/queued_work.hpp"
#include "host/model/run_checks.hpp"

namespace wide {

namespace {

void check_operand(const char* what, const ModelOperand& expected, const ConstTensorView& got,
                   Device device) {
  const auto name = [&] { return std::string("model: ") + what + " " + expected.name; };
  WIDE_REQUIRE(got.shape == expected.shape && got.dtype == expected.dtype,
               name() + " is " + std::string(dtype_name(got.dtype)) + " " + to_string(got.shape) +
                   ", expected " + std::string(dtype_name(expected.dtype)) + " " +
                   to_string(expected.shape));
  WIDE_REQUIRE(got.is_contiguous(),
               name() + " has strides " + to_string(got.strides) + ", expected it densely packed");
  require_device("model", expected.name, got, device);
}

}  // namespace

Model::Model(const Context& context, const ModelPlan& plan,
             std::span<const MemberParameters> members)
    : plan_(plan) {
  const ModelPlan::State& s = plan_.state();
  const auto n = static_cast<size_t>(s.problem.num_members);
  WIDE_REQUIRE(context.device() == s.context.device(),
               "model: the context is of " + to_string(context.device()) +
                   ", expected the plan's device = " + to_string(s.context.device()));
  WIDE_REQUIRE(members.size() == n, "model: " + counted(members.size(), "member") +
                                        ", expected the plan's = " + std::to_string(n));
  state_ = std::make_shared<State>(context, s.memory.weights_bytes,
                                   static_cast<size_t>(s.stored_members));
  const OwnedStream stream(context);
  QueuedWork work(context, stream.get());
  MemberLoads loads{.host = HostContext(context), .makes_model = true};
  for (size_t i = 0; i < n; ++i) {
    load(static_cast<int64_t>(i), members[i], stream.get(), loads);
    if (s.mask_storage >= 0) set_mask(static_cast<int64_t>(i), false, stream.get());
  }
  if (!s.dropouts.empty()) {
    load_probabilities(s, *state_, stream.get());
    seed_dropout(0, 0, stream.get());
  }
  work.wait();
}

void Model::require_member(int64_t member) const {
  const int64_t n = plan_.problem().num_members;
  WIDE_REQUIRE(member >= 0 && member < n, "model: member is " + std::to_string(member) +
                                              ", expected one in [0, " + std::to_string(n) + ")");
}

Model Model::with_batch(int64_t batch) const {
  ModelProblem problem = plan_.problem();
  problem.batch = batch;
  problem.batches.clear();
  return with_problem(problem, "a batch of " + std::to_string(batch));
}

Model Model::with_num_members(int64_t num_members) const {
  const int64_t most = plan_.problem().num_members;
  WIDE_REQUIRE(num_members >= 1 && num_members <= most,
               "model: num_members is " + std::to_string(num_members) + ", expected one in [1, " +
                   std::to_string(most) + "], as many as there are");
  ModelProblem problem = plan_.problem();
  problem.num_members = num_members;
  if (!problem.batches.empty()) problem.batches.resize(static_cast<size_t>(num_members));
  return with_plan(ModelPlan(plan_same_graph(plan_.state(), problem)),
                   counted(num_members, "member"));
}

Model Model::with_fewer_rows(int64_t batch) const {
  ModelProblem problem = plan_.problem();
  problem.batch = batch;
  return with_plan(ModelPlan(plan_same_graph(plan_.state(), problem)),
                   "a batch of " + std::to_string(batch));
}

Model Model::with_batches(std::vector<int64_t> batches) const {
  WIDE_REQUIRE(!batches.empty(), "model: batches is empty, expected one per member");
  return with_problem({.num_members = plan_.problem().num_members, .batches = std::move(batches)},
                      "these batches");
}

Model Model::with_problem(const ModelProblem& problem, const std::string& what) const {
  const ModelPlan::State& s = plan_.state();
  return with_plan(ModelPlan(plan_model(s.context, s.source, problem, s.options, s.stored_members)),
                   what);
}

Model Model::with_plan(ModelPlan plan, const std::string& what) const {
  const ModelPlan::State& s = plan_.state();
  const ModelPlan::State& other = plan.state();
  // Numbers of storages differ where one member needs no copy; what counts is where they lie.
  const auto offset_of = [](const ModelPlan::State& of, int32_t storage) {
    return storage < 0 ? -1 : of.storages[static_cast<size_t>(storage)].offset;
  };
  bool fits = other.slots.size() == s.slots.size() &&
              offset_of(other, other.mask_storage) == offset_of(s, s.mask_storage) &&
              offset_of(other, other.seed_storage) == offset_of(s, s.seed_storage) &&
              other.memory.weights_bytes == s.memory.weights_bytes;
  for (size_t i = 0; fits && i < s.slots.size(); ++i) {
    const ParameterSlot &a = s.slots[i], &b = other.slots[i];
    fits = s.graph.name(a.value) == other.graph.name(b.value) && a.order == b.order &&
           a.stored_members == b.stored_members &&
           offset_of(s, a.storage) == offset_of(other, b.storage);
  }
  if (!fits) {
    throw_unsupported("model: " + what +
                      " would store parameters otherwise than the plan's: make a model of its own");
  }
  return Model(std::move(plan), state_);
}

namespace {

void require_count(const char* what, size_t got, std::span<const ModelOperand> expected) {
  if (got == expected.size()) return;
  std::string names;
  for (const ModelOperand& operand : expected) names += (names.empty() ? "" : ", ") + operand.name;
  throw_invalid_argument("model: " + std::to_string(got) + " " + what + ", expected " +
                         std::to_string(expected.size()) + ": " + names);
}

/// Checks all arguments of a run, and returns their addresses.
Bases bases_of(const ModelPlan& plan, Tensor& weights, const ModelArguments& arguments,
               const Execution& execution) {
  const ModelPlan::State& s = plan.state();
  const Device device = s.context.device();
  require_count("inputs", arguments.inputs.size(), s.inputs);
  require_count("outputs", arguments.outputs.size(), s.outputs);
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    check_operand("input", s.inputs[i], arguments.inputs[i], device);
  }
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    check_operand("output", s.outputs[i], arguments.outputs[i], device);
  }
  require_stream(device, execution.stream);
  require_workspace("model", execution, s.memory.workspace_bytes());
  require_apart(s.inputs, s.outputs, arguments, execution, s.memory.workspace_bytes());
  return {.inputs = arguments.inputs,
          .outputs = arguments.outputs,
          .weights = static_cast<std::byte*>(weights.data()),
          .activations = static_cast<std::byte*>(execution.workspace.data),
          .storages = s.storages};
}

/// Checked before the first step: a later one that finds no handles would be too late.
void require_handles_of(const ModelPlan& plan, const Execution& execution) {
  const ModelPlan::State& s = plan.state();
  const Device device = s.context.device();
  if (!s.cublas_caller.empty()) require_cublas(s.cublas_caller, execution, device);
  if (!s.cudnn_caller.empty()) require_cudnn(s.cudnn_caller, execution, device);
}

/// The workspace after the activations.
Execution of_steps(const ModelPlan& plan, const Execution& execution) {
  const ModelMemory& memory = plan.memory();
  Execution own = execution;
  own.workspace.data =
      memory.scratch_bytes == 0
          ? nullptr
          : static_cast<std::byte*>(execution.workspace.data) + memory.activation_bytes;
  own.workspace.bytes = memory.scratch_bytes;
  return own;
}

}  // namespace

void Model::run(const ModelArguments& arguments, const Execution& execution) const {
  const auto lock = state_->lock.for_run();
  enqueue(arguments, execution);
}

void Model::enqueue(const ModelArguments& arguments, const Execution& execution) const {
  const NvtxRange range("wide::model");
  const Bases bases = bases_of(plan_, state_->weights, arguments, execution);
  require_handles_of(plan_, execution);
  const Execution own = of_steps(plan_, execution);
  for (const RunStep& step : plan_.state().run) step(bases, own);
}

void Model::check(const ModelArguments& arguments, const Execution& execution) const {
  bases_of(plan_, state_->weights, arguments, execution);
  require_handles_of(plan_, execution);
}

void Model::run_step(int64_t step, const ModelArguments& arguments,
                     const Execution& execution) const {
  const std::vector<RunStep>& steps = plan_.state().run;
  WIDE_REQUIRE(step >= 0 && step < static_cast<int64_t>(steps.size()),
               "model: step is " + std::to_string(step) + ", expected one in [0, " +
                   std::to_string(steps.size()) + ")");
  const Bases bases = bases_of(plan_, state_->weights, arguments, execution);
  const auto lock = state_->lock.for_run();
  steps[static_cast<size_t>(step)](bases, of_steps(plan_, execution));
}

Model compile(const Context& context, const Graph& graph, std::span<const MemberParameters> members,
              int64_t batch, const ModelOptions& options) {
  const auto n = static_cast<int64_t>(members.size());
  return Model(context,
               make_model_plan(context, graph, {.num_members = n, .batch = batch}, options),
               members);
}

MemberParameters views_of(const OwnedParameters& parameters) {
  return {parameters.begin(), parameters.end()};
}

std::vector<MemberParameters> views_of(std::span<const OwnedParameters> members) {
  std::vector<MemberParameters> views;
  for (const OwnedParameters& parameters : members) views.push_back(views_of(parameters));
  return views;
}

std::vector<std::string> equal_parameters(const Graph& graph,
                                          std::span<const MemberParameters> members) {
  std::vector<std::string> names;
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  std::vector<HostValues> values;
  for (size_t i = 0; i < members.size(); ++i) {
    values.push_back(
        checked_parameters(cpu, graph, static_cast<int64_t>(i), members[i], Stream::cpu()));
  }
  for (const Value parameter : graph.parameters()) {
    const std::string& name = graph.name(parameter);
    const bool are_equal = std::all_of(values.begin(), values.end(), [&](const HostValues& v) {
      return v.at(name) == values.front().at(name);
    });
    if (are_equal && members.size() > 1) names.push_back(name);
  }
  return names;
}

}  // namespace wide
