// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plans of models: passes, places, steps, memory.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string_view>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/model/layout.hpp"
#include "host/model/member_values.hpp"
#include "host/model/memory.hpp"
#include "host/model/model_problem.hpp"
#include "host/model/model_state.hpp"
#include "host/model/move.hpp"
#include "host/model/passes.hpp"
#include "host/model/ragged.hpp"
#include "host/model/routed.hpp"
#include "host/model/sizes.hpp"

namespace wide {

namespace {

/// Throws for names that are neither a group's nor a node's after all passes.
void check_strategies(const Graph& graph, const ModelOptions& options) {
  const auto groups = strategy_groups();
  std::vector<std::string_view> names(groups.begin(), groups.end());
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  for (const auto& [name, strategy] : options.strategies) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = did_you_mean(name, names);
    throw_invalid_argument("model: strategies names \"" + name +
                           "\", which is no primitive and no node that is left after the passes" +
                           (near.empty() ? expected_name(name, groups) : near));
  }
}

/// Offsets of activations by when they are needed, and the scratch after them.
void plan_memory(ModelPlan::State& s, const std::vector<LoweredStep>& steps) {
  std::vector<Lifetime> lifetimes;
  std::vector<size_t> owners;
  for (size_t storage = 0; storage < s.storages.size(); ++storage) {
    if (s.storages[storage].kind != MemoryKind::activations) continue;
    Lifetime life{s.storages[storage].bytes, static_cast<int64_t>(steps.size()), -1};
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::vector<int32_t>& used = steps[i].storages;
      if (std::find(used.begin(), used.end(), static_cast<int32_t>(storage)) == used.end())
        continue;
      life.first = std::min(life.first, static_cast<int64_t>(i));
      life.last = static_cast<int64_t>(i);
    }
    lifetimes.push_back(life);
    owners.push_back(storage);
  }
  const Packing packing = pack_lifetimes(lifetimes, s.options.reuses_memory);
  for (size_t i = 0; i < owners.size(); ++i) s.storages[owners[i]].offset = packing.offsets[i];
  s.memory.activation_bytes = packing.bytes;
  for (const LoweredStep& step : steps) {
    s.memory.scratch_bytes = std::max(s.memory.scratch_bytes, step.info.scratch_bytes);
  }
}

int64_t bytes_of(std::span<const ModelOperand> operands) {
  int64_t bytes = 0;
  for (const ModelOperand& o : operands) bytes += checked_bytes(o.shape, dtype_bytes(o.dtype));
  return bytes;
}

/// A refusal is reported with the node, or output, that asks for what is refused.
template <class Lower>
void lower_as(const std::string& asker, const Lower& lower) {
  try {
    lower();
  } catch (const MoveNeeded&) {
    throw;
  } catch (const TooLarge&) {
    throw;
  } catch (const Error& error) {
    const std::string name = "model: " + asker;
    if (std::string_view(error.what()).starts_with(name)) throw;
    throw Error(error.code(), name + ": " + error.what());
  }
}

/// Model::State::kept: of parameters that no slot holds as they were given.
int64_t kept_bytes(const ModelPlan::State& s) {
  std::set<std::string_view> stored;
  for (const ParameterSlot& slot : s.slots) {
    if (s.graph.kind(slot.value) == ValueKind::parameter) stored.insert(s.graph.name(slot.value));
  }
  int64_t bytes = 0;
  for (const Value parameter : s.source.parameters()) {
    if (stored.contains(s.source.name(parameter))) continue;
    const ValueType& type = s.source.type(parameter);
    bytes += checked_bytes(type.shape, dtype_bytes(type.dtype));
  }
  return checked_bytes({s.stored_members}, bytes);
}

void lower_node(Lowering& l, const Node& node) {
  if (l.is_ragged()) return lower_ragged(l, node);
  if (l.problem().is_routed) return lower_routed(l, node);
  std::visit([&](const auto& op) { lower(l, node, op); }, node.operation);
}

/// Places, steps and memory of s.graph. Throws MoveNeeded where something must be copied first.
void lower_graph(ModelPlan::State& s, const ModelOptions& options) {
  Lowering l(s.context, s.graph, s.problem, options, s.stored_members);
  const std::vector<OutputCopy> copies = place_values(l, s.problem);
  if (s.problem.is_routed) lower_routing(l);
  for (const Node& node : s.graph.nodes()) {
    lower_as(node.name, [&] { lower_node(l, node); });
  }
  for (const OutputCopy& copy : copies) {
    lower_as(copy.name, [&] {
      if (is_mixture(s.problem)) return lower_combination(l, copy);
      l.add_copy(copy.name, stacked_view(copy.from, l.device()), stacked_view(copy.to, l.device()),
                 copy.to.is_shared() ? 1 : s.problem.num_members);
    });
  }
  s.storages = std::move(l.storages);
  s.slots = std::move(l.slots);
  s.dropouts = std::move(l.dropouts);
  s.mask_storage = l.mask_storage;
  s.seed_storage = l.seed_storage;
  s.inputs = std::move(l.inputs);
  s.outputs = std::move(l.outputs);
  s.num_pass_notes = s.notes.size();
  s.notes.insert(s.notes.end(), l.notes.begin(), l.notes.end());
  plan_memory(s, l.steps);
  s.memory.weights_bytes = l.weights_bytes;
  s.memory.table_bytes = l.table_bytes;
  s.memory.host_bytes = kept_bytes(s);
  s.memory.input_bytes = bytes_of(s.inputs);
  s.memory.output_bytes = bytes_of(s.outputs);
  for (LoweredStep& step : l.steps) {
    const VendorCalls& calls = step.info.vendor_calls;
    if (calls.cublas && s.cublas_caller.empty()) s.cublas_caller = "model: " + step.info.node;
    if (calls.cudnn && s.cudnn_caller.empty()) s.cudnn_caller = "model: " + step.info.node;
    s.steps.push_back(std::move(step.info));
    s.run.push_back(std::move(step.run));
    s.planners.push_back(std::move(step.planner));
    s.step_storages.push_back(std::move(step.storages));
  }
  s.places = l.places();
}

}  // namespace

ModelOptions model_options(std::string_view preset) {
  if (preset == "default") return {};
  if (preset == "fast") return {.allows_tf32 = true, .allows_rounded_weights = true};
  if (preset == "debug") {
    return {.folds_batchnorm = false,
            .fuses_epilogues = false,
            .reuses_memory = false,
            .channel_layout = ChannelLayout::channels_first};
  }
  if (preset == "safe") {
    return {
        .folds_batchnorm = false, .fuses_epilogues = false, .strategies = {{"all", "sequential"}}};
  }
  throw_invalid_argument("model: preset is \"" + std::string(preset) +
                         "\", expected default, fast, debug or safe");
}

namespace {

ModelPlan::State blank_state(const Context& context, const Graph& graph,
                             const ModelProblem& problem, const ModelOptions& options,
                             int64_t stored_members) {
  return {.context = context,
          .source = graph,
          .graph = graph,
          .problem = problem,
          .stored_members = stored_members,
          .options = options};
}

/// What members are loaded with, and which of it is stored once.
std::vector<ModelParameter> parameters_of(const ModelPlan::State& s) {
  std::set<std::string> shared;
  for (const ParameterSlot& slot : s.slots) {
    if (is_one_for_all(s, slot)) shared.merge(parameters_in(s.graph, slot.value));
  }
  std::vector<ModelParameter> all;
  for (const Value value : s.source.parameters()) {
    const std::string& name = s.source.name(value);
    const ValueType& type = s.source.type(value);
    all.push_back({name, type.dtype, type.shape, shared.contains(name)});
  }
  return all;
}

/// Lowers s.graph, to which copies are added where values cannot be read as they lie.
std::shared_ptr<const ModelPlan::State> lowered(ModelPlan::State s) {
  for (Moves moves;;) {
    try {
      lower_graph(s, s.options);
      s.parameters = parameters_of(s);
      return std::make_shared<const ModelPlan::State>(std::move(s));
    } catch (const MoveNeeded& needed) {
      if (!s.options.moves_data) throw;
      s.graph = moves.insert(s.graph, needed, s.notes);
    }
  }
}

}  // namespace

std::shared_ptr<const ModelPlan::State> plan_model(const Context& context, const Graph& graph,
                                                   const ModelProblem& problem,
                                                   const ModelOptions& options,
                                                   int64_t stored_members) {
  const ModelProblem full = checked_problem(problem);
  ModelPlan::State s = blank_state(context, graph, full, options, stored_members);
  if (options.tuning != nullptr) {
    s.tuning = std::make_shared<const TuningCache>(*options.tuning);
    s.options.tuning = s.tuning.get();
  }
  check_shared_parameters(graph, options.shared_parameters);
  // Not without shared parameters, since rows of all members and of each do not fuse.
  const bool has_trunk = full.is_routed && !options.shared_parameters.empty();
  s.graph = run_passes(has_trunk ? with_shared_inputs(graph) : graph, options, s.notes);
  check_sizes(s.graph, full, shared_values(s.graph, options.shared_parameters, options.drops_out));
  s.graph =
      prefer_channels_last(context.info(), verified_strategies(), s.graph, full, options, s.notes);
  if (options.fuses_epilogues) {
    s.graph = fuse_mlps(context.info(), verified_strategies(), s.graph, full, options, s.notes);
  }
  check_strategies(s.graph, options);
  return lowered(std::move(s));
}

std::shared_ptr<const ModelPlan::State> plan_same_graph(const ModelPlan::State& plan,
                                                        const ModelProblem& problem) {
  ModelPlan::State s = blank_state(plan.context, plan.source, checked_problem(problem),
                                   plan.options, plan.stored_members);
  s.graph = plan.graph;
  s.tuning = plan.tuning;  // which the options point to
  s.notes.assign(plan.notes.begin(),
                 plan.notes.begin() + static_cast<std::ptrdiff_t>(plan.num_pass_notes));
  return lowered(std::move(s));
}

ModelPlan make_model_plan(const Context& context, const Graph& graph, const ModelProblem& problem,
                          const ModelOptions& options) {
  return ModelPlan(plan_model(context, graph, problem, options, problem.num_members));
}

const ModelProblem& ModelPlan::problem() const {
  return state_->problem;
}
const Graph& ModelPlan::graph() const {
  return state_->graph;
}
const ModelMemory& ModelPlan::memory() const {
  return state_->memory;
}
std::span<const ModelOperand> ModelPlan::inputs() const {
  return state_->inputs;
}
std::span<const ModelOperand> ModelPlan::outputs() const {
  return state_->outputs;
}
std::span<const ModelParameter> ModelPlan::parameters() const {
  return state_->parameters;
}
std::span<const ModelStep> ModelPlan::steps() const {
  return state_->steps;
}
VendorCalls ModelPlan::vendor_calls() const {
  return {.cublas = !state_->cublas_caller.empty(), .cudnn = !state_->cudnn_caller.empty()};
}
std::span<const std::string> ModelPlan::notes() const {
  return state_->notes;
}

namespace {

/// "linear by wide, once for all members: the tiles ..": explanations begin with the strategy.
std::string_view reason_of(const ModelStep& step) {
  const std::string_view explain = step.explain;
  const std::string name = step.strategy + ": ";
  return explain.substr(explain.starts_with(name) ? name.size() : 0);
}

std::string members_text(const ModelStep& step, const ModelProblem& problem) {
  if (step.member >= 0) return ", rows of member " + std::to_string(step.member);
  return step.num_members == 1 && problem.num_members > 1 ? ", once for all members" : "";
}

}  // namespace

std::string ModelPlan::explain() const {
  std::string text;
  for (const std::string& note : state_->notes) text += note + "\n";
  for (const ModelStep& step : state_->steps) {
    text += step.node + ": " + step.primitive +
            (step.strategy.empty() ? "" : " by " + step.strategy) +
            members_text(step, state_->problem) + ": " + std::string(reason_of(step)) + "\n";
  }
  return text;
}

namespace {

/// Whether a plan can be made and takes no more than `bytes`. If there is none even for one row or
/// member, that is an error; for more it means no.
bool fits(const Context& context, const Graph& graph, const ModelProblem& problem, bool is_first,
          int64_t bytes, const ModelOptions& options) {
  try {
    const ModelPlan plan = make_model_plan(context, graph, problem, options);
    const bool is_on_host = context.device().type == DeviceType::cpu;
    const ModelMemory& memory = plan.memory();
    return memory.total_bytes() + (is_on_host ? memory.host_bytes : 0) <= bytes;
  } catch (const TooLarge&) {
    return false;
  } catch (const Error& error) {
    const bool is_refusal =
        error.code() == ErrorCode::unsupported || error.code() == ErrorCode::invalid_argument;
    if (is_first || !is_refusal) throw;
    return false;
  }
}

/// The largest count up to `limit` that fits, if memory grows with the count.
int64_t largest(int64_t limit, const std::function<bool(int64_t)>& fits) {
  if (limit < 1 || !fits(1)) return 0;
  int64_t most = 1, too_many = 0;
  while (too_many == 0) {
    if (most == limit) return limit;
    const int64_t next = most <= limit / 2 ? 2 * most : limit;
    (fits(next) ? most : too_many) = next;
  }
  while (too_many - most > 1) {
    const int64_t middle = most + (too_many - most) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  return most;
}

}  // namespace

int64_t largest_num_members_that_fits(const Context& context, const Graph& graph, int64_t batch,
                                      int64_t bytes, const ModelOptions& options) {
  return largest(std::numeric_limits<int64_t>::max(), [&](int64_t n) {
    return fits(context, graph, {.num_members = n, .batch = batch}, n == 1, bytes, options);
  });
}

int64_t largest_batch_that_fits(const Context& context, const Graph& graph, int64_t num_members,
                                int64_t bytes, int64_t most, const ModelOptions& options) {
  return largest(most, [&](int64_t batch) {
    return fits(context, graph, {.num_members = num_members, .batch = batch}, batch == 1, bytes,
                options);
  });
}

}  // namespace wide
