// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A model: a plan's parameters in place, its run, and what happens to its members.
#include "wide/model.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/model/member_values.hpp"
#include "host/model/model_state.hpp"
#include "host/model/run_checks.hpp"

namespace wide {

struct Model::State {
  Context context;
  Tensor weights;
  /// Of each member: parameters that are not in the weights as they were given.
  std::vector<HostValues> kept;
  std::vector<bool> is_masked;
};

namespace {

const ModelPlan::State& state_of(const ModelPlan& plan) {
  return plan.state();
}

TensorView bytes_at(const Tensor& weights, int64_t offset, int64_t bytes) {
  return TensorView(static_cast<std::byte*>(weights.data()) + offset, Dtype::uint8, Shape{bytes},
                    weights.view().device);
}

ConstTensorView bytes_of(const HostValue& value) {
  return ConstTensorView(value.bytes.data(), Dtype::uint8,
                         Shape{static_cast<int64_t>(value.bytes.size())}, Device{});
}

/// Bytes of member `member` in a slot.
TensorView slot_bytes(const ModelPlan::State& s, const ParameterSlot& slot, const Tensor& weights,
                      int64_t member) {
  const int64_t own = slot.place.num_members == 1 ? 0 : member;
  const int64_t start = s.storages[static_cast<size_t>(slot.storage)].offset;
  return bytes_at(weights, start + own * slot.member_bytes, slot.member_bytes);
}

/// The slot that holds a parameter as it was given, but for the order of its axes; nullptr: none.
const ParameterSlot* raw_slot(const ModelPlan::State& s, const std::string& parameter) {
  for (const ParameterSlot& slot : s.slots) {
    const bool is_raw = s.graph.kind(slot.value) == ValueKind::parameter;
    if (is_raw && s.graph.name(slot.value) == parameter) return &slot;
  }
  return nullptr;
}

std::string shape_text(const Shape& shape) {
  return to_string(shape);
}

void check_operand(const char* what, const ModelOperand& expected, const ConstTensorView& got,
                   Device device) {
  const auto name = [&] { return std::string("model: ") + what + " " + expected.name; };
  WIDE_REQUIRE(got.shape == expected.shape && got.dtype == expected.dtype,
               name() + " is " + std::string(dtype_name(got.dtype)) + " " + shape_text(got.shape) +
                   ", expected " + std::string(dtype_name(expected.dtype)) + " " +
                   shape_text(expected.shape));
  WIDE_REQUIRE(got.is_contiguous(),
               name() + " has strides " + to_string(got.strides) + ", expected it densely packed");
  require_device("model", expected.name, got, device);
}

}  // namespace

Model::Model(const Context& context, const ModelPlan& plan,
             std::span<const MemberParameters> members)
    : plan_(plan) {
  const ModelPlan::State& s = state_of(plan_);
  const auto n = static_cast<size_t>(s.problem.num_members);
  WIDE_REQUIRE(context.device() == s.context.device(),
               "model: the context is of " + to_string(context.device()) +
                   ", expected the plan's device = " + to_string(s.context.device()));
  WIDE_REQUIRE(members.size() == n, "model: " + std::to_string(members.size()) +
                                        " members, expected the plan's = " + std::to_string(n));
  state_ = std::make_shared<State>(State{context,
                                         Tensor(context, Dtype::uint8, {s.memory.weights_bytes}),
                                         std::vector<HostValues>(n), std::vector<bool>(n, false)});
  const OwnedStream stream(context);
  HostContext host(context);
  for (size_t i = 0; i < n; ++i) {
    load(static_cast<int64_t>(i), members[i], stream.get(), i > 0, host);
    if (s.mask_storage >= 0) set_mask(static_cast<int64_t>(i), false, stream.get());
  }
  if (!s.dropouts.empty()) seed_dropout(0, 0, stream.get());
  context.synchronize(stream.get());
}

void Model::require_member(int64_t member) const {
  const int64_t n = plan_.problem().num_members;
  WIDE_REQUIRE(member >= 0 && member < n, "model: member is " + std::to_string(member) +
                                              ", expected one in [0, " + std::to_string(n) + ")");
}

void Model::replace(int64_t member, const MemberParameters& parameters, Stream stream) {
  HostContext host(state_->context);
  load(member, parameters, stream, true, host);
}

void Model::load(int64_t member, const MemberParameters& parameters, Stream stream,
                 bool checks_shared, HostContext& host) {
  require_member(member);
  const ModelPlan::State& s = state_of(plan_);
  State& state = *state_;
  require_stream(state.context.device(), stream);
  const HostValues values = checked_parameters(state.context, s.source, member, parameters, stream);
  // All that can be refused is refused before anything is written.
  std::vector<HostValue> contents;
  for (const ParameterSlot& slot : s.slots) {
    contents.push_back(permuted(evaluate(s.graph, slot.value, values, host), slot.order));
    const bool is_shared = slot.place.num_members == 1 && s.problem.num_members > 1;
    if (!is_shared || !checks_shared) continue;
    HostValue now{contents.back().type, std::vector<std::byte>(contents.back().bytes.size())};
    copy(slot_bytes(s, slot, state.weights, member),
         TensorView(now.bytes.data(), Dtype::uint8, Shape{slot.member_bytes}, Device{}), stream);
    state.context.synchronize(stream);
    WIDE_REQUIRE(now.bytes == contents.back().bytes,
                 "model: member " + std::to_string(member) + ": " + s.graph.name(slot.value) +
                     " differs from that of the other members, expected the same: it is one of "
                     "shared_parameters");
  }
  for (size_t i = 0; i < contents.size(); ++i) {
    if (contents[i].bytes.empty()) continue;
    copy(bytes_of(contents[i]), slot_bytes(s, s.slots[i], state.weights, member), stream);
  }
  HostValues& kept = state.kept[static_cast<size_t>(member)];
  kept.clear();
  for (const auto& [name, value] : values) {
    if (raw_slot(s, name) == nullptr) kept.emplace(name, value);
  }
  state.context.synchronize(stream);
}

void Model::clone(int64_t from, int64_t to, Stream stream) {
  require_member(from);
  require_member(to);
  require_stream(state_->context.device(), stream);
  if (from == to) return;
  const ModelPlan::State& s = state_of(plan_);
  for (const ParameterSlot& slot : s.slots) {
    if (slot.place.num_members == 1) continue;
    copy(slot_bytes(s, slot, state_->weights, from), slot_bytes(s, slot, state_->weights, to),
         stream);
  }
  state_->kept[static_cast<size_t>(to)] = state_->kept[static_cast<size_t>(from)];
}

OwnedParameters Model::get(int64_t member, Stream stream) const {
  require_member(member);
  require_stream(state_->context.device(), stream);
  const ModelPlan::State& s = state_of(plan_);
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  OwnedParameters parameters;
  std::map<std::string, HostValue> permuted_ones;
  for (const Value parameter : s.source.parameters()) {
    const std::string& name = s.source.name(parameter);
    const ValueType& type = s.source.type(parameter);
    Tensor tensor(cpu, type.dtype, type.shape);
    const TensorView bytes(tensor.data(), Dtype::uint8, Shape{tensor.bytes()}, Device{});
    if (const ParameterSlot* slot = raw_slot(s, name)) {
      HostValue stored{{type.dtype, slot->place.shape},
                       std::vector<std::byte>(static_cast<size_t>(slot->member_bytes))};
      copy(slot_bytes(s, *slot, state_->weights, member),
           TensorView(stored.bytes.data(), Dtype::uint8, Shape{slot->member_bytes}, Device{}),
           stream);
      state_->context.synchronize(stream);
      const HostValue value = permuted(stored, inverse(slot->order));
      std::memcpy(tensor.data(), value.bytes.data(), value.bytes.size());
    } else {
      const HostValue& value = state_->kept[static_cast<size_t>(member)].at(name);
      std::memcpy(tensor.data(), value.bytes.data(), value.bytes.size());
    }
    parameters.emplace(name, std::move(tensor));
  }
  return parameters;
}

std::vector<int64_t> Model::compact(Stream stream) {
  const int64_t n = plan_.problem().num_members;
  std::vector<int64_t> from;
  for (int64_t member = 0; member < n; ++member) {
    if (!is_masked(member)) from.push_back(member);
  }
  const auto active = static_cast<int64_t>(from.size());
  for (int64_t to = 0; to < active; ++to) clone(from[static_cast<size_t>(to)], to, stream);
  for (int64_t member = 0; member < n; ++member) set_mask(member, member >= active, stream);
  return from;
}

Model Model::with_batch(int64_t batch) const {
  return with_problem({.num_members = plan_.problem().num_members, .batch = batch},
                      "a batch of " + std::to_string(batch));
}

Model Model::with_batches(std::vector<int64_t> batches) const {
  WIDE_REQUIRE(!batches.empty(), "model: batches is empty, expected one per member");
  return with_problem({.num_members = plan_.problem().num_members, .batches = std::move(batches)},
                      "these batches");
}

Model Model::with_problem(const ModelProblem& problem, const std::string& what) const {
  const ModelPlan::State& s = state_of(plan_);
  ModelPlan plan = make_model_plan(s.context, s.source, problem, s.options);
  const ModelPlan::State& other = plan.state();
  bool fits = other.slots.size() == s.slots.size() && other.mask_storage == s.mask_storage &&
              other.memory.weights_bytes == s.memory.weights_bytes;
  for (size_t i = 0; fits && i < s.slots.size(); ++i) {
    const ParameterSlot &a = s.slots[i], &b = other.slots[i];
    fits = s.graph.name(a.value) == other.graph.name(b.value) && a.order == b.order &&
           s.storages[static_cast<size_t>(a.storage)].offset ==
               other.storages[static_cast<size_t>(b.storage)].offset;
  }
  if (!fits) {
    throw_unsupported("model: " + what +
                      " would store parameters otherwise than the plan's: make a model of its own");
  }
  return Model(std::move(plan), state_);
}

void Model::set_mask(int64_t member, bool is_masked, Stream stream) {
  require_member(member);
  require_stream(state_->context.device(), stream);
  const ModelPlan::State& s = state_of(plan_);
  state_->is_masked[static_cast<size_t>(member)] = is_masked;
  if (s.mask_storage < 0) return;
  const int64_t offset = s.storages[static_cast<size_t>(s.mask_storage)].offset;
  fill_bytes(bytes_at(state_->weights, offset + member, 1), is_masked ? 0 : 1, stream);
}

void Model::mask(int64_t member, Stream stream) {
  const auto masked = std::count(state_->is_masked.begin(), state_->is_masked.end(), true);
  require_member(member);
  WIDE_REQUIRE(is_masked(member) || masked + 1 < plan_.problem().num_members,
               "model: mask of member " + std::to_string(member) +
                   " would leave none, expected one that is not masked");
  set_mask(member, true, stream);
}
void Model::unmask(int64_t member, Stream stream) {
  set_mask(member, false, stream);
}
bool Model::is_masked(int64_t member) const {
  require_member(member);
  return state_->is_masked[static_cast<size_t>(member)];
}

void Model::seed_dropout(uint64_t seed, uint64_t sequence, Stream stream) {
  const ModelPlan::State& s = state_of(plan_);
  WIDE_REQUIRE(!s.dropouts.empty(),
               "model: seed_dropout: nothing is dropped, expected a plan with drops_out");
  require_stream(state_->context.device(), stream);
  const auto n = static_cast<size_t>(s.problem.num_members);
  for (const DropoutSlots& slot : s.dropouts) {
    std::vector<int64_t> seeds;
    for (size_t i = 0; i < n; ++i) {
      seeds.push_back(static_cast<int64_t>(seed + i));
      seeds.push_back(static_cast<int64_t>(sequence * s.dropouts.size()) + slot.number);
    }
    const std::vector<float> probabilities(n, slot.probability);
    const auto upload = [&](const void* data, int32_t storage, size_t bytes) {
      const Shape shape{static_cast<int64_t>(bytes)};
      const int64_t offset = s.storages[static_cast<size_t>(storage)].offset;
      copy(ConstTensorView(data, Dtype::uint8, shape, Device{}),
           bytes_at(state_->weights, offset, shape[0]), stream);
    };
    upload(seeds.data(), slot.seeds, seeds.size() * sizeof(int64_t));
    upload(probabilities.data(), slot.probabilities, n * sizeof(float));
    state_->context.synchronize(stream);
  }
}

namespace {

/// Checks everything that a run is given, and has its addresses.
Bases bases_of(const ModelPlan& plan, const Tensor& weights, const ModelArguments& arguments,
               const Execution& execution) {
  const ModelPlan::State& s = state_of(plan);
  const Device device = s.context.device();
  const auto require_count = [](const char* what, size_t got, size_t expected) {
    WIDE_REQUIRE(got == expected, "model: " + std::to_string(got) + " " + what + ", expected " +
                                      std::to_string(expected));
  };
  require_count("inputs", arguments.inputs.size(), s.inputs.size());
  require_count("outputs", arguments.outputs.size(), s.outputs.size());
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

/// What is left of the workspace behind the activations.
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
  const NvtxRange range("wide::model");
  const Bases bases = bases_of(plan_, state_->weights, arguments, execution);
  const Execution own = of_steps(plan_, execution);
  for (const RunStep& step : state_of(plan_).run) step(bases, own);
}

void Model::check(const ModelArguments& arguments, const Execution& execution) const {
  bases_of(plan_, state_->weights, arguments, execution);
}

void Model::run_step(int64_t step, const ModelArguments& arguments,
                     const Execution& execution) const {
  const std::vector<RunStep>& steps = state_of(plan_).run;
  WIDE_REQUIRE(step >= 0 && step < static_cast<int64_t>(steps.size()),
               "model: step is " + std::to_string(step) + ", expected one in [0, " +
                   std::to_string(steps.size()) + ")");
  const Bases bases = bases_of(plan_, state_->weights, arguments, execution);
  steps[static_cast<size_t>(step)](bases, of_steps(plan_, execution));
}

Model compile(const Context& context, const Graph& graph, std::span<const MemberParameters> members,
              int64_t batch, const ModelOptions& options) {
  const auto n = static_cast<int64_t>(members.size());
  return Model(context,
               make_model_plan(context, graph, {.num_members = n, .batch = batch}, options),
               members);
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
