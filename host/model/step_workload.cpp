// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A storage of the model that a step reads or writes is an operand here: inputs as they lie in
// memory, whatever the views of them, outputs member by member.
#include "host/model/step_workload.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "host/core/check.hpp"
#include "host/model/batch.hpp"
#include "host/model/graph_workload.hpp"
#include "host/model/member_values.hpp"
#include "host/model/model_state.hpp"
#include "host/spec.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

/// A step's node as a graph of its own; by the names there, the values of the model's graph that
/// its inputs and parameters are.
struct StepGraph {
  std::shared_ptr<const Graph> graph;
  std::map<std::string, Value> inputs, parameters;
};

class StepGraphBuilder {
 public:
  StepGraphBuilder(const Graph& graph, const Node& node)
      : graph_(graph), node_(node), builder_(node.name) {}

  StepGraph build() {
    if (const auto* mlp = std::get_if<MlpOp>(&node_.operation)) {
      builder_.output("y", layers(*mlp));
    } else {
      std::vector<Operand> operands;
      for (const wide::Operand& operand : node_.operands)
        operands.push_back({operand.name, add(operand.name, operand.value)});
      append(std::move(operands));
    }
    step_.graph = std::make_shared<const Graph>(std::move(builder_).build());
    return std::move(step_);
  }

 private:
  using Operand = wide::Operand;

  Value add(const std::string& name, Value of) {
    if (of.is_absent()) return {};
    const ValueType& type = graph_.type(of);
    const bool is_input = is_batched(graph_, of);
    (is_input ? step_.inputs : step_.parameters)[name] = of;
    return is_input ? builder_.input(name, type.shape, type.dtype)
                    : builder_.parameter(name, type.shape, type.dtype);
  }
  void append(std::vector<Operand> operands) {
    if (node_.outputs.size() == 1) {
      builder_.output("y", builder_.append("step", node_.operation, std::move(operands)));
      return;
    }
    const auto [y, second] = builder_.append_two("step", node_.operation, std::move(operands));
    builder_.output("y", y);
    builder_.output("second", second);
  }
  /// The layers that an mlp was made from, on the weights as they were before they were packed.
  Value layers(const MlpOp& op) {
    const Node& packing = *graph_.producer(node_.operand("weights"));
    Value y = add("x", node_.operand("x"));
    for (size_t i = 0; i + 1 < op.widths.size(); ++i) {
      const bool is_last = i + 2 == op.widths.size();
      const std::string weight = "weight" + std::to_string(i), bias = "bias" + std::to_string(i);
      y = builder_.append("layer" + std::to_string(i),
                          LinearOp{.activation = is_last ? op.last_activation : op.activation},
                          {{"x", y},
                           {"weight", add(weight, packing.operand(weight))},
                           {"bias", add(bias, packing.operand(bias))}});
    }
    return y;
  }

  const Graph& graph_;
  const Node& node_;
  GraphBuilder builder_;
  StepGraph step_;
};

const Node& node_named(const Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.name == name; });
}

const ParameterSlot* slot_at(const ModelPlan::State& s, int32_t storage) {
  const auto slot = std::find_if(s.slots.begin(), s.slots.end(), [&](const ParameterSlot& each) {
    return each.storage == storage;
  });
  return slot == s.slots.end() ? nullptr : &*slot;
}

/// The operand with a batch that lies in this storage; absent where there is none.
Value operand_in(const ModelPlan::State& s, const Node& node, int32_t storage) {
  for (const wide::Operand& operand : node.operands) {
    const Value value = operand.value;
    if (is_batched(s.graph, value) && s.places[static_cast<size_t>(value.index)].storage == storage)
      return value;
  }
  return {};
}

bool is_output_of(const ModelPlan::State& s, const Node& node, int32_t storage) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](Value y) {
    return s.places[static_cast<size_t>(y.index)].storage == storage;
  });
}

/// Why a step cannot be tuned; empty where it can.
std::string fixed_reason(const ModelPlan::State& s, size_t step) {
  if (s.problem.is_routed)
    return "their rows are routed to members: tune --op top_k,routing,routed_linear,routed_mlp, "
           "and "
           "layernorm,rmsnorm,chain --routed yes";
  if (!s.planners[step].key) return "copies have one strategy";
  const Node& node = node_named(s.graph, s.steps[step].node);
  if (std::holds_alternative<EnsembleOp>(node.operation))
    return "the reference of a model has one member, and these combine all";
  for (const int32_t storage : s.step_storages[step]) {
    if (s.storages[static_cast<size_t>(storage)].kind == MemoryKind::weights) {
      if (slot_at(s, storage) == nullptr) return "they read what is no parameter of the graph";
    } else if (!is_output_of(s, node, storage) && operand_in(s, node, storage).is_absent()) {
      return "they read a copy, for each member, of what is one for all";
    }
  }
  return "";
}

/// A member's parameters by their names, from which values that depend on them are computed.
using MemberParametersOf = std::function<const OwnedParameters&(int64_t member)>;

class StepWorkload final : public GraphWorkload {
 public:
  StepWorkload(const ModelPlan& plan, size_t step, StepGraph graph, const WorkloadOptions& options,
               MemberParametersOf parameters)
      : GraphWorkload(plan.state().context, plan.steps()[step].num_members, options, graph.graph,
                      plan.problem().batch),
        plan_(plan),
        state_(plan_.state()),
        planner_(state_.planners[step]),
        node_(node_named(state_.graph, state_.steps[step].node)),
        step_(std::move(graph)),
        owned_(std::move(parameters)),
        storages_(state_.storages) {
    std::set<int32_t> used(state_.step_storages[step].begin(), state_.step_storages[step].end());
    for (const Value y : node_.outputs) used.erase(place_of(y).storage);
    for (const int32_t storage : used) {
      const ParameterSlot* slot = slot_at(state_, storage);
      put(storage, slot == nullptr ? add_input(storage) : add_parameter(*slot));
    }
    for (const Value y : node_.outputs) {
      const Place& place = place_of(y);
      put(place.storage, add_output(add_value(state_.graph.name(y), place.dtype, place.shape,
                                              place.member_axis, Distribution::none())));
    }
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] { return planner_.plan({.strategy = std::string(strategy)}); });
  }
  Prepared prepare(const PlanOptions& options) override {
    PlannedStep planned = planner_.plan(options);
    return {[run = std::move(planned.run), this](const Execution& execution) {
              run({.inputs = {}, .outputs = views_, .storages = storages_}, execution);
            },
            planned.info.scratch_bytes, planned.info.strategy, planned.policy,
            planned.info.explain};
  }
  std::string baseline_unsupported_reason() const override {
    return "a step of a model has no baseline";
  }
  PreparedMembers prepare_members() override { throw_unsupported(baseline_unsupported_reason()); }

  /// At most what any strategy has to do: times below it are taken for errors.
  Cost cost() const override {
    const auto bytes = [&](Value value) {
      const Place& place = place_of(value);
      return static_cast<double>(place.num_members * num_elements(place.shape) *
                                 dtype_bytes(place.dtype));
    };
    Cost cost;
    const bool skips_keys = !node_.operand("key_lengths").is_absent();
    cost.flops = static_cast<double>(num_members() * batch()) * least_graph_flops(graph());
    for (const Value y : node_.outputs) cost.bytes_written += bytes(y);
    const bool skips_positions = std::holds_alternative<ConvOp>(node_.operation) ||
                                 std::holds_alternative<PoolingOp>(node_.operation) ||
                                 std::holds_alternative<InterpolateOp>(node_.operation);
    for (const auto& [name, value] : step_.inputs) {
      if (!skips_keys && !skips_positions) cost.bytes_read += bytes(value);
    }
    for (const auto& [name, value] : step_.parameters) {
      if (name == "table") continue;  // few of its rows may be read
      const ValueType& type = state_.graph.type(value);
      cost.bytes_read +=
          static_cast<double>(num_members() * num_elements(type.shape) * dtype_bytes(type.dtype));
    }
    return cost;
  }

 private:
  const Place& place_of(Value value) const {
    return state_.places[static_cast<size_t>(value.index)];
  }

  /// From now on the step finds this storage where the operand is.
  void put(int32_t storage, const Operand& operand) {
    storages_[static_cast<size_t>(storage)] = {MemoryKind::output,
                                               static_cast<int64_t>(views_.size()), 0, 0};
    views_.push_back(operand.packed());
    operands_[storage] = &operand;
  }

  /// All of a storage, of which the step may read a part only.
  Operand& add_input(int32_t storage) {
    const Value value = operand_in(state_, node_, storage);
    const Dtype dtype = place_of(value).dtype;
    const int64_t elements =
        state_.storages[static_cast<size_t>(storage)].bytes / dtype_bytes(dtype);
    const auto same = std::find_if(step_.inputs.begin(), step_.inputs.end(),
                                   [&](const auto& input) { return input.second == value; });
    const Value input =
        *std::find_if(graph().inputs().begin(), graph().inputs().end(),
                      [&](Value each) { return graph().name(each) == same->first; });
    return add_value(same->first, dtype, {batch(), elements / batch()}, -1,
                     distribution_of(graph(), input));
  }

  /// The members' values one after another, as the model stores them.
  Operand& add_parameter(const ParameterSlot& slot) {
    Operand::Description description;
    description.packing = {state_.graph.name(slot.value), PackedOperand::Kind::joined, 0, 1, 1};
    description.dtype = slot.place.dtype;
    description.member_shape = {slot.place.num_members * num_elements(slot.place.shape)};
    description.is_shared = true;
    description.contents = [this, &slot](int64_t, bool, std::span<std::byte> bytes) {
      for (int64_t m = 0; m < slot.place.num_members; ++m) {
        const HostValue value = permuted(value_of(slot.value, m), slot.order);
        std::memcpy(bytes.data() + m * slot.member_bytes, value.bytes.data(), value.bytes.size());
      }
    };
    return add_operand(std::move(description));
  }

  /// A parameter, or what the model computes from parameters as it loads them.
  HostValue value_of(Value value, int64_t member) const {
    const OwnedParameters& owned = owned_(member);
    HostValues values;
    for (const std::string& name : parameters_in(state_.graph, value)) {
      const Value parameter = state_.source.find_parameter(name);
      values.emplace(name, checked_parameter(context(), state_.source, member, parameter,
                                             owned.at(name), Stream::cpu()));
    }
    HostContext host(context());
    return evaluate(state_.graph, value, values, host);
  }

  Values inputs_of(int64_t member, int64_t batch_row) const override {
    Values inputs;
    for (const auto& [name, value] : step_.inputs) {
      const Place& place = place_of(value);
      const std::span<const double> all = operands_.at(place.storage)->values(0);
      Doubles& row = inputs[name];
      row.shape.assign(place.shape.begin(), place.shape.end());
      row.shape[0] = 1;
      const int64_t count = num_elements(place.shape) / place.shape[0];
      const int64_t first =
          place.offset + member * place.member_stride + batch_row * place.strides[0];
      for (int64_t i = 0; i < count; ++i) {
        int64_t at = first, rest = i;
        for (int axis = place.shape.rank() - 1; axis > 0; --axis) {
          at += rest % place.shape[axis] * place.strides[axis];
          rest /= place.shape[axis];
        }
        row.values.push_back(all[static_cast<size_t>(at)]);
      }
    }
    return inputs;
  }
  Values parameters_of(int64_t member) const override {
    Values parameters;
    for (const auto& [name, value] : step_.parameters) {
      const HostValue stored = value_of(value, member);
      parameters[name] = to_doubles(
          ConstTensorView(stored.bytes.data(), stored.type.dtype, stored.type.shape, Device{}));
    }
    return parameters;
  }

  ModelPlan plan_;
  const ModelPlan::State& state_;
  const StepPlanner& planner_;
  const Node& node_;
  StepGraph step_;
  MemberParametersOf owned_;
  std::vector<Storage> storages_;  ///< the model's; those of this step are operands here
  std::vector<TensorView> views_;
  std::map<int32_t, const Operand*> operands_;  ///< by storage
};

}  // namespace

struct ModelSteps::State {
  Case point;
  ModelPlan plan;
  std::vector<StepProblem> problems;
  std::vector<FixedSteps> fixed;
  uint64_t seed = 0;
  std::map<int64_t, OwnedParameters> parameters{};  ///< drawn from the seed when first needed

  const OwnedParameters& parameters_of(int64_t member) {
    const auto found = parameters.find(member);
    if (found != parameters.end()) return found->second;
    return parameters.emplace(member, model_parameters(point, seed, member)).first->second;
  }
};

namespace {

/// No result may overwrite an operand, since calls are repeated.
ModelPlan plan_of_steps(const Context& context, const Case& point) {
  return make_model_plan(context, model_graph(point), model_problem(point),
                         {.reuses_memory = false});
}

}  // namespace

ModelSteps::ModelSteps(const Context& context, const Case& point)
    : state_(new State{point, plan_of_steps(context, point), {}, {}}) {
  const ModelPlan::State& s = state_->plan.state();
  const auto with = [](auto& list, const auto& is_same) {
    return std::find_if(list.begin(), list.end(), is_same);
  };
  for (size_t i = 0; i < s.steps.size(); ++i) {
    const ModelStep& step = s.steps[i];
    if (const std::string reason = fixed_reason(s, i); !reason.empty()) {
      auto& fixed = state_->fixed;
      auto same = with(fixed, [&](const FixedSteps& each) { return each.reason == reason; });
      if (same == fixed.end()) same = fixed.insert(fixed.end(), {reason, {}});
      same->nodes.push_back(step.node);
      continue;
    }
    const TuningKey key = s.planners[i].key();
    auto& problems = state_->problems;
    auto same = with(problems, [&](const StepProblem& each) { return each.key == key; });
    if (same == problems.end()) {
      const Value y = node_named(s.graph, step.node).outputs[0];
      same = problems.insert(problems.end(), {step.primitive, key, {}, s.graph.type(y).dtype, i});
    }
    same->nodes.push_back(step.node);
  }
}

ModelSteps::~ModelSteps() = default;

const Case& ModelSteps::point() const {
  return state_->point;
}
const std::vector<StepProblem>& ModelSteps::problems() const {
  return state_->problems;
}
const std::vector<FixedSteps>& ModelSteps::fixed() const {
  return state_->fixed;
}

std::unique_ptr<Workload> ModelSteps::make_workload(const StepProblem& problem,
                                                    const WorkloadOptions& options) {
  State& state = *state_;
  if (options.seed != state.seed) state.parameters.clear();
  state.seed = options.seed;
  const ModelPlan::State& s = state.plan.state();
  const Node& node = node_named(s.graph, s.steps[problem.step].node);
  WorkloadOptions own;
  own.seed = options.seed;
  own.fill = options.fill;
  return std::make_unique<StepWorkload>(
      state.plan, problem.step, StepGraphBuilder(s.graph, node).build(), own,
      [&state](int64_t member) -> const OwnedParameters& { return state.parameters_of(member); });
}

}  // namespace wide::catalog
