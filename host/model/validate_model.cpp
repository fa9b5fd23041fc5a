// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The wide model against its members one by one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "host/model/input_numbers.hpp"
#include "host/model/model_state.hpp"
#include "host/model/random_routing.hpp"
#include "host/model/rewrite.hpp"
#include "host/model/routed.hpp"
#include "kernels/common/philox.hpp"
#include "wide/convert.hpp"
#include "wide/validate_model.hpp"

namespace wide {

namespace {

/// A model with operands of its own, and a stream.
class Run {
 public:
  Run(const Context& context, const ModelPlan& plan, std::span<const MemberParameters> members)
      : context_(context),
        model_(context, plan, members),
        stream_(context),
        handles_(context),
        workspace_(context, Dtype::uint8, {plan.workspace_bytes()}) {
    for (const ModelOperand& o : plan.inputs()) inputs_.emplace_back(context, o.dtype, o.shape);
    for (const ModelOperand& o : plan.outputs()) outputs_.emplace_back(context, o.dtype, o.shape);
  }

  /// For a member alone: drops what it drops in a model of all, whose member i draws by seed i. A
  /// mask depends on nothing else but the element's number in its member.
  void drop_as(int64_t member) {
    if (model_.plan().state().dropouts.empty()) return;
    model_.seed_dropout(static_cast<uint64_t>(member), 0, stream_.get());
  }

  void set_input(size_t k, const std::vector<std::byte>& bytes) {
    const Shape shape{static_cast<int64_t>(bytes.size())};
    copy(ConstTensorView(bytes.data(), Dtype::uint8, shape, Device{}),
         TensorView(inputs_[k].data(), Dtype::uint8, shape, context_.device()), stream_.get());
    context_.synchronize(stream_.get());
  }

  std::vector<std::vector<std::byte>> run() {
    const std::vector<ConstTensorView> inputs(inputs_.begin(), inputs_.end());
    const std::vector<TensorView> outputs(outputs_.begin(), outputs_.end());
    model_.run({inputs, outputs},
               {stream_.get(), {workspace_.data(), workspace_.bytes()}, &handles_});
    std::vector<std::vector<std::byte>> all;
    for (const Tensor& y : outputs_) {
      std::vector<std::byte>& bytes = all.emplace_back(static_cast<size_t>(y.bytes()));
      const Shape shape{y.bytes()};
      copy(ConstTensorView(y.data(), Dtype::uint8, shape, context_.device()),
           TensorView(bytes.data(), Dtype::uint8, shape, Device{}), stream_.get());
    }
    context_.synchronize(stream_.get());
    return all;
  }

 private:
  Context context_;
  Model model_;
  OwnedStream stream_;
  VendorHandles handles_;
  Tensor workspace_;
  std::vector<Tensor> inputs_, outputs_;
};

/// Element `i` of member `m` among those of all, where members stand in front of `axis`, or have
/// rows of their own.
int64_t place_of(const ModelOperand& operand, const ModelOperand& single, int64_t m, int64_t i) {
  if (operand.member_axis < 0) return i;
  if (!operand.first_rows.empty()) {
    return operand.first_rows[static_cast<size_t>(m)] *
               (num_elements(single.shape) / single.shape[0]) +
           i;
  }
  int64_t inner = 1;
  const int first = operand.is_stacked ? 0 : operand.member_axis;
  for (int axis = first; axis < single.shape.rank(); ++axis) inner *= single.shape[axis];
  return (i / inner * operand.num_members + m) * inner + i % inner;
}

/// Ids that all tables have, lengths up to the number of positions; floats in [-1, 1].
double input_value(const Graph& graph, Value input, const InputNumbers& numbers, uint32_t word) {
  const double unit = word * 0x1p-32;
  if (is_floating(graph.type(input).dtype)) return 2 * unit - 1;
  const auto count = static_cast<double>(numbers.last - numbers.first + 1);
  return static_cast<double>(numbers.first) + std::floor(unit * count);
}

/// A member alone has the layout of a dense tensor, wherever its one member stands.
ModelOperand dense(ModelOperand single) {
  if (single.is_stacked) {
    single.shape = Shape(std::span(single.shape.begin() + 1, single.shape.end()));
  }
  return single;
}

using Bytes = std::vector<std::byte>;

/// An input for all members, and each member's own part of it.
struct Input {
  Bytes packed;
  std::vector<Bytes> own;
};

/// `alone` are members' plans of one member, none for those without rows.
Input random_input(const Graph& graph, size_t k, const ModelOperand& wide_operand,
                   std::span<const std::optional<ModelPlan>> alone, uint64_t seed) {
  const int64_t n = std::ssize(alone), element = dtype_bytes(wide_operand.dtype);
  const InputNumbers numbers = input_numbers(graph, graph.inputs()[k]);
  Input input;
  input.packed.resize(static_cast<size_t>(num_elements(wide_operand.shape) * element));
  for (int64_t m = 0; m < n; ++m) {
    Bytes& own = input.own.emplace_back();
    const auto& plan = alone[static_cast<size_t>(m)];
    if (!plan) continue;
    const ModelOperand single = dense(plan->inputs()[k]);
    const int64_t count = num_elements(single.shape);
    const uint64_t member = wide_operand.member_axis < 0 ? 0 : static_cast<uint64_t>(m);
    own.resize(static_cast<size_t>(count * element));
    for (int64_t i = 0; i < count; ++i) {
      const auto words = kernels::philox4x32(seed, static_cast<uint64_t>(i), k << 32 | member);
      const double value = input_value(graph, graph.inputs()[k], numbers, words.word[0]);
      store_element(own.data(), single.dtype, i, value);
      store_element(input.packed.data(), single.dtype, place_of(wide_operand, single, m, i), value);
    }
  }
  return input;
}

/// One output of a member in the model of all against its output alone; of a routed model, the
/// member's rows.
double error_of(const ModelOperand& wide_operand, const ModelOperand& single, int64_t m,
                const Bytes& all, const Bytes& alone, std::span<const int64_t> members) {
  double scale = 0, error = 0;
  const int64_t row_length = num_elements(single.shape) / std::max<int64_t>(single.shape[0], 1);
  for (int64_t i = 0; i < num_elements(single.shape); ++i) {
    if (!members.empty() && members[static_cast<size_t>(i / row_length)] != m) continue;
    const double expected = load_element(alone.data(), single.dtype, i);
    const double got = load_element(all.data(), single.dtype, place_of(wide_operand, single, m, i));
    if (got == expected) {  // infinities, too, which give no scale
      if (std::isfinite(expected)) scale = std::max(scale, std::abs(expected));
      continue;
    }
    const double difference = std::abs(got - expected);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    scale = std::max(scale, std::abs(expected));
    error = std::max(error, difference);
  }
  return error == 0 ? 0 : error / scale;
}

bool is_ensemble(const Graph& graph, Value output) {
  return std::holds_alternative<EnsembleOp>(graph.producer(output)->operation);
}

/// Adds the inputs of ensembles to the outputs, since an ensemble says nothing about one member.
Graph with_joined_values(const Graph& graph) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes()) rewrite.copy(node);
  std::set<std::string> names;
  std::set<int32_t> values;
  for (const Operand& output : graph.outputs()) {
    names.insert(output.name);
    values.insert(output.value.index);
  }
  for (const Operand& output : graph.outputs()) {
    if (!is_ensemble(graph, output.value)) continue;
    const Value x = graph.producer(output.value)->operand("x");
    const bool is_computed = graph.kind(x) == ValueKind::computed;
    if (!is_computed || !values.insert(x.index).second) continue;
    std::string name = output.name + ".joined";
    while (!names.insert(name).second) name += "_";
    rewrite.builder().output(name, rewrite(x));
  }
  return rewrite.finish();
}

std::vector<std::optional<ModelPlan>> plans_alone(const Context& context, const Graph& graph,
                                                  const ModelProblem& problem, bool drops_out) {
  ModelOptions options = model_options("safe");
  options.drops_out = drops_out;
  std::map<int64_t, ModelPlan> by_rows;
  std::vector<std::optional<ModelPlan>> plans;
  for (int64_t m = 0; m < problem.num_members; ++m) {
    const bool is_ragged = !problem.batches.empty();
    const int64_t rows = is_ragged ? problem.batches[static_cast<size_t>(m)] : problem.batch;
    plans.emplace_back();
    if (rows == 0) continue;
    if (!by_rows.contains(rows)) {
      by_rows.emplace(rows,
                      make_model_plan(context, graph, {.num_members = 1, .batch = rows}, options));
    }
    plans.back() = by_rows.at(rows);
  }
  return plans;
}

}  // namespace

std::vector<double> validate_model(const Context& context, const Graph& given,
                                   const ModelProblem& problem,
                                   std::span<const MemberParameters> members,
                                   const ModelOptions& options, uint64_t seed) {
  const Graph graph = with_joined_values(given);
  const ModelPlan wide_plan = make_model_plan(context, graph, problem, options);
  const std::vector<std::optional<ModelPlan>> alone =
      plans_alone(context, graph, problem, options.drops_out);
  Run all(context, wide_plan, members);
  std::vector<Input> inputs;
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    inputs.push_back(random_input(graph, k, wide_plan.inputs()[k], alone, seed));
    all.set_input(k, inputs.back().packed);
  }
  const RandomRouting routing = random_routing(wide_plan, seed);
  for (size_t i = 0; i < routing.inputs.size(); ++i) {
    all.set_input(inputs.size() + i, routing.inputs[i]);
  }
  const std::vector<Bytes> wide_outputs = all.run();
  MixtureSums sums(routing, wide_plan);
  std::vector<double> errors;
  for (int64_t m = 0; m < problem.num_members; ++m) {
    const auto& plan = alone[static_cast<size_t>(m)];
    errors.push_back(0);
    if (!plan) continue;
    Run one(context, *plan, members.subspan(static_cast<size_t>(m), 1));
    one.drop_as(m);
    for (size_t k = 0; k < inputs.size(); ++k) {
      one.set_input(k, inputs[k].own[static_cast<size_t>(m)]);
    }
    const std::vector<Bytes> outputs = one.run();
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (is_ensemble(graph, graph.outputs()[k].value)) continue;  // says nothing of one member
      if (is_mixture(problem)) {
        sums.add(k, m, outputs[k]);
        continue;
      }
      errors.back() =
          std::max(errors.back(), error_of(wide_plan.outputs()[k], dense(plan->outputs()[k]), m,
                                           wide_outputs[k], outputs[k], routing.members));
    }
  }
  for (size_t k = 0; is_mixture(problem) && k < wide_outputs.size(); ++k) {
    for (int64_t m = 0; m < problem.num_members; ++m) {
      double& error = errors[static_cast<size_t>(m)];
      error = std::max(error, sums.error(k, m, wide_outputs[k]));
    }
  }
  return errors;
}

}  // namespace wide
