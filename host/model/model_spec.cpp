// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models for bench: a graph is measured, checked and compared like any primitive, under the name
// model:NAME.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "host/core/check.hpp"
#include "host/model/graph_reference.hpp"
#include "host/model/model_catalog.hpp"
#include "host/spec.hpp"
#include "wide/model.hpp"
#include "wide/models.hpp"

namespace wide::catalog {

namespace {

using GraphOf = std::function<Graph(const Case&)>;

/// How a strategy compiles.
ModelOptions options_of(std::string_view strategy) {
  if (strategy == "channels_last") return {.channel_layout = ChannelLayout::channels_last};
  return model_options(strategy == "unfused"      ? "debug"
                       : strategy == "sequential" ? "safe"
                                                  : "default");
}

/// What a reader of a value expects of it: ids below the table's rows, lengths up to all positions.
Distribution distribution_of(const Graph& graph, Value input) {
  const Dtype dtype = graph.type(input).dtype;
  for (const Node& node : graph.nodes()) {
    const Value table = node.operand("table"), x = node.operand("x");
    if (node.operand("ids") == input) return Distribution::ids(graph.type(table).shape[0]);
    if (node.operand("key_lengths") == input && !x.is_absent()) {
      return {Distribution::Kind::ids, 1, static_cast<double>(graph.type(x).shape[1]), 1};
    }
  }
  return is_floating(dtype) ? Distribution::uniform() : Distribution::ids(2);
}

class ModelWorkload final : public PackedWorkload {
 public:
  ModelWorkload(const Context& context, std::shared_ptr<const Graph> graph,
                const ModelProblem& problem, const WorkloadOptions& options,
                const ParametersOf& parameters_of)
      : PackedWorkload(context, problem.num_members, options),
        graph_(std::move(graph)),
        problem_(problem),
        plan_(make_model_plan(context, *graph_, problem)) {
    WIDE_REQUIRE(graph_->outputs().size() == 1,
                 "model: " + graph_->name() + " has " + std::to_string(graph_->outputs().size()) +
                     " outputs, expected one to be measured and checked");
    for (size_t k = 0; k < plan_.inputs().size(); ++k) {
      const Value input = graph_->inputs()[k];
      inputs_.push_back(&add(plan_.inputs()[k], distribution_of(*graph_, input)));
      input_views_.push_back(inputs_.back()->packed());
    }
    y_ = &add(plan_.outputs()[0], Distribution::none());
    output_views_.push_back(y_->packed());
    for (int64_t m = 0; m < num_members(); ++m) {
      const auto index = static_cast<size_t>(m);
      const int64_t id = index < options.member_ids.size() ? options.member_ids[index] : m;
      parameters_.push_back(parameters_of ? parameters_of(options.seed, id)
                                          : random_parameters(*graph_, options.seed, id));
    }
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] { return plan_for(strategy); });
  }

  Prepared prepare(const PlanOptions& options) override {
    const std::string strategy = options.strategy == "auto" ? "compiled" : options.strategy;
    const ModelPlan plan = plan_for(strategy);
    std::vector<MemberParameters> members;
    for (size_t m = 0; m < parameters_.size(); ++m) members.push_back(views_of(m));
    const auto model = std::make_shared<const Model>(this->context(), plan, members);
    return {[model, this](const Execution& execution) {
              model->run({input_views_, output_views_}, execution);
            },
            plan.workspace_bytes(), strategy, "", summary_of(plan)};
  }

  std::string baseline_unsupported_reason() const override { return ""; }

  /// Each member as a model of its own.
  PreparedMembers prepare_members() override {
    const ModelPlan plan =
        make_model_plan(context(), *graph_, {.num_members = 1, .batch = problem_.batch});
    struct Member {
      std::unique_ptr<const Model> model;
      std::vector<ConstTensorView> inputs;
      std::vector<TensorView> outputs;
    };
    auto members = std::make_shared<std::vector<Member>>();
    for (size_t m = 0; m < parameters_.size(); ++m) {
      const MemberParameters parameters = views_of(m);
      Member member;
      member.model = std::make_unique<const Model>(context(), plan, std::span(&parameters, 1));
      for (size_t k = 0; k < inputs_.size(); ++k) {
        member.inputs.push_back(as(plan.inputs()[k], inputs_[k]->member(static_cast<int64_t>(m))));
      }
      member.outputs.push_back(as(plan.outputs()[0], y_->member(static_cast<int64_t>(m))));
      members->push_back(std::move(member));
    }
    return {[members](int64_t n, const Execution& execution) {
              const Member& member = (*members)[static_cast<size_t>(n)];
              member.model->run({member.inputs, member.outputs}, execution);
            },
            plan.workspace_bytes()};
  }

  /// Every parameter and input once, whatever lies between.
  Cost cost() const override {
    const double rows = static_cast<double>(problem_.num_members * problem_.batch);
    const ModelMemory& memory = plan_.memory();
    return {rows * graph_flops(*graph_),
            static_cast<double>(memory.weights_bytes + memory.input_bytes),
            static_cast<double>(memory.output_bytes)};
  }
  int64_t footprint_bytes() const override {
    return PackedWorkload::footprint_bytes() + plan_.memory().weights_bytes +
           plan_.memory().workspace_bytes();
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const int64_t rows_of_batch = rows(member) / problem_.batch;
    const Evaluated& all = evaluated(member, row / rows_of_batch);
    const auto first = static_cast<size_t>(row % rows_of_batch) * values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = all.values[first + i];
      tolerances[i] =
          all.tolerance + unit_roundoff(graph_->type(output()).dtype) * std::abs(values[i]);
    }
  }
  double reference_row_flops() const override {
    return (kNoisy + 1) * graph_flops(*graph_) * static_cast<double>(problem_.batch) /
           static_cast<double>(std::max<int64_t>(rows(0), 1));
  }

 private:
  static constexpr int kNoisy = 3;
  struct Evaluated {
    std::vector<double> values;
    double tolerance = 0;
  };

  Value output() const { return graph_->outputs()[0].value; }

  Operand& add(const ModelOperand& operand, const Distribution& distribution) {
    Shape shape = operand.shape;
    PackedOperand packing{operand.name, PackedOperand::Kind::joined,
                          std::max(operand.member_axis, 0), 1, kMaxRank};
    if (operand.is_stacked) {
      packing.kind = PackedOperand::Kind::stacked;
      shape = Shape(std::span(operand.shape.begin() + 1, operand.shape.end()));
    } else if (operand.member_axis > 0) {
      shape[operand.member_axis] /= problem_.num_members;
    }
    const bool is_shared = operand.member_axis < 0;
    return add_operand(packing, operand.dtype, shape, distribution, is_shared);
  }

  /// A dense member as a model of one member wants it.
  static TensorView as(const ModelOperand& operand, const TensorView& member) {
    return TensorView(member.data, member.dtype, operand.shape, member.device);
  }

  MemberParameters views_of(size_t member) const {
    MemberParameters views;
    for (const auto& [name, tensor] : parameters_[member]) views.emplace(name, tensor);
    return views;
  }

  ModelPlan plan_for(std::string_view strategy) const {
    ModelPlan plan = make_model_plan(context(), *graph_, problem_, options_of(strategy));
    const auto same = [](const ModelOperand& a, const ModelOperand& b) {
      return a.shape == b.shape && a.member_axis == b.member_axis;
    };
    const bool fits =
        std::equal(plan.inputs().begin(), plan.inputs().end(), plan_.inputs().begin(), same) &&
        std::equal(plan.outputs().begin(), plan.outputs().end(), plan_.outputs().begin(), same);
    if (!fits) throw_unsupported("model: its operands lie otherwise than those of compiled");
    return plan;
  }

  /// "12 steps: 4 linear (simt), ..; 1.2 MB of workspace"
  static std::string summary_of(const ModelPlan& plan) {
    std::map<std::string, int> counts;
    for (const ModelStep& step : plan.steps()) {
      ++counts[step.primitive + (step.strategy.empty() ? "" : " (" + step.strategy + ")")];
    }
    std::string text = std::to_string(plan.steps().size()) + " steps:";
    const char* separator = " ";
    for (const auto& [name, count] : counts) {
      text += separator + std::to_string(count) + " " + name;
      separator = ", ";
    }
    return text + "; " + std::to_string(plan.workspace_bytes()) + " bytes of workspace";
  }

  /// One row of a member's batch, and how far noise of the rounding's size moves it.
  const Evaluated& evaluated(int64_t member, int64_t batch_row) const {
    const auto key = std::pair(member, batch_row);
    if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
    std::map<std::string, Doubles> inputs, parameters;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Value input = graph_->inputs()[k];
      const Shape& shape = graph_->type(input).shape;
      Doubles& row = inputs[graph_->name(input)];
      row.shape.assign(shape.begin(), shape.end());
      row.shape[0] = 1;
      size_t count = 1;
      for (const int64_t extent : row.shape) count *= static_cast<size_t>(extent);
      const std::span<const double> all = inputs_[k]->values(member);
      const auto own = all.subspan(static_cast<size_t>(batch_row) * count, count);
      row.values.assign(own.begin(), own.end());
    }
    for (const auto& [name, tensor] : parameters_[static_cast<size_t>(member)]) {
      parameters[name] = to_doubles(tensor);
    }
    const std::string& name = graph_->outputs()[0].name;
    Evaluated result;
    result.values = evaluate_graph(*graph_, inputs, parameters).at(name).values;
    const double rounding = unit_roundoff(graph_->type(output()).dtype);
    for (int i = 1; i <= kNoisy; ++i) {
      const RoundingNoise noise{0x1p-24, rounding, static_cast<uint64_t>(i)};
      const std::vector<double> noisy =
          evaluate_graph(*graph_, inputs, parameters, noise).at(name).values;
      for (size_t e = 0; e < noisy.size(); ++e) {
        result.tolerance = std::max(result.tolerance, 8 * std::abs(noisy[e] - result.values[e]));
      }
    }
    return cache_[key] = std::move(result);
  }

  std::shared_ptr<const Graph> graph_;
  ModelProblem problem_;
  ModelPlan plan_;
  std::vector<Operand*> inputs_;
  Operand* y_ = nullptr;
  std::vector<ConstTensorView> input_views_;
  std::vector<TensorView> output_views_;
  std::vector<OwnedParameters> parameters_;
  mutable std::map<std::pair<int64_t, int64_t>, Evaluated> cache_;
};

/// Whether channels could be last where they are first.
bool has_images(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    const auto* conv = std::get_if<ConvOp>(&node.operation);
    return conv != nullptr && conv->layout == ChannelLayout::channels_first &&
           graph.type(node.outputs[0]).shape.rank() == 4;
  });
}

std::vector<StrategyInfo> strategies(const Graph& graph) {
  std::vector<StrategyInfo> list;
  for (const DeviceType device : {DeviceType::cuda, DeviceType::cpu}) {
    list.push_back({"sequential", device, StrategyKind::sequential,
                    "node after node, and in each member after member"});
    list.push_back({"unfused", device, StrategyKind::hand_written,
                    "node after node, as the graph says, all members at once"});
    list.push_back(
        {"compiled", device, StrategyKind::hand_written, "after all passes, all members at once"});
    if (!has_images(graph)) continue;
    list.push_back({"channels_last", device, StrategyKind::hand_written,
                    "the same, with channels last wherever convolutions of images can have them"});
  }
  return list;
}

/// `usual` is the graph of a case of defaults.
PrimitiveSpec spec_of(std::string_view name, std::string_view summary, const Graph& usual,
                      const GraphOf& graph_of, int64_t usual_batch,
                      const ParametersOf& parameters_of = {}) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary = summary;
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "rows of each input per member", usual_batch, {}, 1}};
  spec.strategies = strategies(usual);
  spec.sweeps = {{"quick", {{"n", ints({4, 8, 16, 32})}}},
                 {"full", {{"n", ints({2, 4, 8, 10, 16, 20, 32, 64, 100})}}},
                 {"ci", {{"n", ints({4})}}}};
  spec.tolerance_formula =
      "u_out |y| + 8 max over the row's outputs of |noisy - y|, noisy one of 3 evaluations in "
      "double whose operands of sums of K products are multiplied by 1 +- 2^-24 sqrt(K), and whose "
      "results by 1 +- u_out (Monte Carlo arithmetic)";
  spec.impossible_reason = [](const Case&) { return std::string(); };
  spec.make_workload = [graph_of, parameters_of](
                           const Context& context, const Case& point,
                           const WorkloadOptions& options) -> std::unique_ptr<Workload> {
    return std::make_unique<ModelWorkload>(context, std::make_shared<const Graph>(graph_of(point)),
                                           ModelProblem{point.integer("n"), point.integer("batch")},
                                           options, parameters_of);
  };
  return spec;
}

/// Rows that the models are usually measured with.
int64_t usual_batch(std::string_view name) {
  return name == "mlp" || name == "mlp256" || name == "deep_mlp" ? 32 : name == "vit" ? 4 : 8;
}

GraphOf graph_of(const NamedModel& named) {
  return [&named](const Case& point) {
    ModelSizes sizes{.dtype = point.dtype()};
    sizes.layers = point.integer("layers");
    sizes.width = point.integer("hidden");
    sizes.seq = point.integer("seq");
    sizes.image = point.integer("image");
    const Graph graph = named.make(sizes);
    const WeightFormat format = *parse_weight_format(point.word("weights"));
    return format == WeightFormat::packed ? graph
                                          : with_quantized_weights(graph, {.format = format});
  };
}

PrimitiveSpec named_spec(const NamedModel& named, const std::string& full_name) {
  const GraphOf make = graph_of(named);
  PrimitiveSpec spec =
      spec_of(full_name, named.summary, named.make({}), make, usual_batch(named.name));
  spec.axes.push_back(
      {"layers", "of deep_mlp, bert and vit; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(
      {"hidden", "features between layers, or channels; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back({"seq", "positions of bert; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(
      {"image", "height and width of images; 0: the model's own", int64_t{0}, {}, 0});
  spec.axes.push_back(dtype_axis("of parameters and values"));
  spec.axes.push_back(weights_axis("how those of linear layers are stored"));
  spec.impossible_reason = [make](const Case& point) {
    return reason_against([&] { return make(point); });
  };
  return spec;
}

/// Specs that live as long as the program: those of the named models, then what was added.
struct Registry {
  std::mutex mutex;
  std::deque<std::string> names;
  std::deque<PrimitiveSpec> specs;
  std::deque<GraphOf> graphs;
  Registry() {
    for (const NamedModel& named : named_models()) {
      names.push_back("model:" + std::string(named.name));
      graphs.push_back(graph_of(named));
      specs.push_back(named_spec(named, names.back()));
    }
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::vector<const PrimitiveSpec*> models() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<const PrimitiveSpec*> list;
  for (const PrimitiveSpec& spec : r.specs) list.push_back(&spec);
  return list;
}

const PrimitiveSpec& add_model(const std::string& name, Graph graph) {
  return add_model(name, std::move(graph), {});
}

const PrimitiveSpec& add_model(const std::string& name, Graph graph, ParametersOf parameters) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const std::string full = "model:" + name;
  for (const PrimitiveSpec& spec : r.specs) {
    WIDE_REQUIRE(spec.name != full, "model: " + name + " is there already");
  }
  const auto shared = std::make_shared<const Graph>(std::move(graph));
  r.names.push_back(full);
  r.graphs.push_back([shared](const Case&) { return *shared; });
  r.specs.push_back(
      spec_of(r.names.back(), "a model of a file", *shared, r.graphs.back(), 8, parameters));
  const std::string_view dtype = dtype_name(shared->type(shared->outputs()[0].value).dtype);
  r.specs.back().axes.push_back({"dtype", "as the file has it", std::string(dtype), {dtype}, 0});
  return r.specs.back();
}

Graph model_graph(const Case& point) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (size_t i = 0; i < r.specs.size(); ++i) {
    if (r.specs[i].name == point.op()) return r.graphs[i](point);
  }
  throw_invalid_argument("model: " + point.op() + " is a primitive, expected a model");
}

}  // namespace wide::catalog
