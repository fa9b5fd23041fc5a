// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// N members as one model against each as a model of its own, and both against the graph in double.
#include "host/model/model_workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "host/core/check.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/model/graph_reference.hpp"
#include "host/operand.hpp"
#include "host/spec.hpp"
#include "wide/convert.hpp"
#include "wide/models.hpp"

namespace wide::catalog {

namespace {

/// How a strategy compiles.
/// The automatic choices are `compiled` with automatic choices for its steps.
ModelOptions options_of(const PlanOptions& asked) {
  const std::string& strategy = asked.strategy;
  if (strategy == "channels_last") return {.channel_layout = ChannelLayout::channels_last};
  ModelOptions options = model_options(strategy == "unfused"      ? "debug"
                                       : strategy == "sequential" ? "safe"
                                                                  : "default");
  if (is_automatic(strategy)) {
    options.strategies.emplace("all", strategy);
    options.tuning = asked.tuning;
  }
  return options;
}

/// The values that a reader expects: ids below the table's rows, lengths up to all positions.
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
    for (size_t k = 0; k < plan_.inputs().size(); ++k) {
      const Value input = graph_->inputs()[k];
      inputs_.push_back(&add(plan_.inputs()[k], distribution_of(*graph_, input)));
      input_views_.push_back(inputs_.back()->packed());
    }
    for (const ModelOperand& output : plan_.outputs()) {
      outputs_.push_back(&add(output, Distribution::none()));
      output_views_.push_back(outputs_.back()->packed());
    }
    for (int64_t m = 0; m < num_members(); ++m) {
      const auto index = static_cast<size_t>(m);
      const int64_t id = index < options.member_ids.size() ? options.member_ids[index] : m;
      parameters_.push_back(parameters_of ? parameters_of(options.seed, id)
                                          : random_parameters(*graph_, options.seed, id));
    }
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] { return plan_for({.strategy = std::string(strategy)}); });
  }

  Prepared prepare(const PlanOptions& options) override {
    const std::string strategy = is_automatic(options.strategy) ? "compiled" : options.strategy;
    const ModelPlan plan = plan_for(options);
    std::vector<MemberParameters> members;
    for (size_t m = 0; m < parameters_.size(); ++m) members.push_back(views_of(m));
    const auto model = std::make_shared<const Model>(this->context(), plan, members);
    return {[model, this](const Execution& execution) {
              model->run({input_views_, output_views_}, execution);
            },
            plan.workspace_bytes(), strategy, "", summary_of(plan)};
  }

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
      for (size_t k = 0; k < outputs_.size(); ++k) {
        member.outputs.push_back(
            as(plan.outputs()[k], outputs_[k]->member(static_cast<int64_t>(m))));
      }
      members->push_back(std::move(member));
    }
    return {[members](int64_t n, const Execution& execution) {
              const Member& member = (*members)[static_cast<size_t>(n)];
              member.model->run({member.inputs, member.outputs}, execution);
            },
            plan.workspace_bytes()};
  }

  /// Every parameter and input once, not intermediates.
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

  int64_t num_outputs() const override {
    int64_t most = 0;  // an output may be one for all members
    for (const Operand* output : outputs_) most = std::max(most, output->num_tensors());
    return most;
  }
  void poison_outputs(OutputOf which, Stream stream) override {
    for (Operand* output : outputs_) output->poison(which, stream);
  }
  MemberOutputs read_outputs(OutputOf which, Stream stream) override {
    std::vector<MemberOutputs> parts;
    for (const Operand* output : outputs_) parts.push_back(output->read(which, stream));
    return parts.size() == 1 ? std::move(parts[0]) : joined(parts);
  }
  /// One output has its own rows; a row of several is their parts of a row of the batch, one after
  /// another.
  int64_t rows(int64_t member) const override {
    return outputs_.size() == 1 ? PackedWorkload::rows(member) : problem_.batch;
  }
  int64_t row_length(int64_t member) const override {
    if (outputs_.size() == 1) return PackedWorkload::row_length(member);
    int64_t length = 0;
    for (const Operand* output : outputs_) length += per_batch_row(*output, member);
    return length;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const int64_t rows_of_batch = rows(member) / problem_.batch;
    const std::vector<Evaluated>& all = evaluated(member, row / rows_of_batch);
    const auto first = static_cast<size_t>(row % rows_of_batch) * values.size();
    size_t i = 0;
    for (size_t k = 0; k < all.size(); ++k) {
      const double rounding = unit_roundoff(output_dtype(k));
      const auto from = all[k].values.begin() + static_cast<ptrdiff_t>(first);
      const auto count = std::min(all[k].values.size() - first, values.size() - i);
      for (size_t e = 0; e < count; ++e, ++i) {
        values[i] = from[static_cast<ptrdiff_t>(e)];
        tolerances[i] = all[k].tolerance + rounding * std::abs(values[i]);
      }
    }
  }
  int64_t reference_rows_together() const override {
    return std::max<int64_t>(rows(0) / std::max<int64_t>(problem_.batch, 1), 1);
  }
  double reference_row_flops() const override {
    return (kNoisy + 1) * graph_flops(*graph_) * static_cast<double>(problem_.batch) /
           static_cast<double>(std::max<int64_t>(rows(0), 1));
  }

 private:
  static constexpr int kNoisy = 3;
  /// The unit roundoff of the coarsest dtype that a value of the graph is rounded to.
  double rounding() const {
    double most = 0;
    for (const Node& node : graph_->nodes()) {
      for (const Value value : node.outputs)
        most = std::max(most, unit_roundoff(graph_->type(value).dtype));
    }
    return most;
  }

  /// One output's part of a row of the batch.
  struct Evaluated {
    std::vector<double> values;
    double tolerance = 0;
  };

  Dtype output_dtype(size_t index) const {
    return graph_->type(graph_->outputs()[index].value).dtype;
  }
  int64_t per_batch_row(const Operand& operand, int64_t member) const {
    return num_elements(operand.member_shape(member)) / problem_.batch;
  }

  /// Outputs side by side in every row of the batch, in fp32 where their dtypes differ.
  MemberOutputs joined(const std::vector<MemberOutputs>& parts) const {
    const bool is_one_dtype = std::all_of(
        parts.begin(), parts.end(), [&](const auto& part) { return part.dtype == parts[0].dtype; });
    MemberOutputs all{is_one_dtype ? parts[0].dtype : Dtype::fp32, {}};
    for (int64_t m = 0; m < num_outputs(); ++m) {
      const int64_t length = row_length(m);
      MemberOutputs::Member& to =
          all.members.emplace_back(MemberOutputs::Member{problem_.batch, length, {}});
      to.bytes.resize(static_cast<size_t>(to.num_elements() * dtype_bytes(all.dtype)));
      int64_t first = 0;
      for (const MemberOutputs& part : parts) {
        const size_t index = std::min(static_cast<size_t>(m), part.members.size() - 1);
        const MemberOutputs::Member& from = part.members[index];
        const int64_t count = from.num_elements() / problem_.batch;
        for (int64_t i = 0; i < from.num_elements(); ++i) {
          store_element(to.bytes.data(), all.dtype, i / count * length + first + i % count,
                        load_element(from.bytes.data(), part.dtype, i));
        }
        first += count;
      }
    }
    return all;
  }

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

  /// A dense member as a model of one member expects it.
  static TensorView as(const ModelOperand& operand, const TensorView& member) {
    return TensorView(member.data, member.dtype, operand.shape, member.device);
  }

  MemberParameters views_of(size_t member) const { return wide::views_of(parameters_[member]); }

  ModelPlan plan_for(const PlanOptions& options) const {
    ModelPlan plan = make_model_plan(context(), *graph_, problem_, options_of(options));
    const auto same = [](const ModelOperand& a, const ModelOperand& b) {
      return a.shape == b.shape && a.member_axis == b.member_axis;
    };
    const bool fits =
        std::equal(plan.inputs().begin(), plan.inputs().end(), plan_.inputs().begin(), same) &&
        std::equal(plan.outputs().begin(), plan.outputs().end(), plan_.outputs().begin(), same);
    if (!fits) throw_unsupported("model: its operands lie otherwise than those of compiled");
    return plan;
  }

  /// "12 steps: 4 linear (simt), 1 softmax (wide, tuned), ..; 1.2 MB of workspace"
  static std::string summary_of(const ModelPlan& plan) {
    std::map<std::string, int> counts;
    for (const ModelStep& step : plan.steps()) {
      const bool is_tuned = step.explain.find(": tuned: ") != std::string::npos;
      const std::string by = step.strategy + (is_tuned ? ", tuned" : "");
      ++counts[step.primitive + (step.strategy.empty() ? "" : " (" + by + ")")];
    }
    std::string text = std::to_string(plan.steps().size()) + " steps:";
    const char* separator = " ";
    for (const auto& [name, count] : counts) {
      text += separator + std::to_string(count) + " " + name;
      separator = ", ";
    }
    return text + "; " + std::to_string(plan.workspace_bytes()) + " bytes of workspace";
  }

  /// One row of a member's batch, output by output, and how far noise of the rounding's size moves
  /// each.
  const std::vector<Evaluated>& evaluated(int64_t member, int64_t batch_row) const {
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
    const auto exact = evaluate_graph(*graph_, inputs, parameters);
    std::vector<Evaluated> results;
    for (const wide::Operand& output : graph_->outputs()) {
      results.push_back({exact.at(output.name).values, 0});
    }
    for (int i = 1; i <= kNoisy; ++i) {
      const RoundingNoise noise{0x1p-24, rounding(), static_cast<uint64_t>(i)};
      const auto noisy = evaluate_graph(*graph_, inputs, parameters, noise);
      for (size_t k = 0; k < results.size(); ++k) {
        Evaluated& result = results[k];
        const std::vector<double>& values = noisy.at(graph_->outputs()[k].name).values;
        for (size_t e = 0; e < values.size(); ++e) {
          result.tolerance = std::max(result.tolerance, 8 * std::abs(values[e] - result.values[e]));
        }
      }
    }
    return cache_[key] = std::move(results);
  }

  std::shared_ptr<const Graph> graph_;
  ModelProblem problem_;
  ModelPlan plan_;
  std::vector<Operand*> inputs_, outputs_;
  std::vector<ConstTensorView> input_views_;
  std::vector<TensorView> output_views_;
  std::vector<OwnedParameters> parameters_;
  mutable std::map<std::pair<int64_t, int64_t>, std::vector<Evaluated>> cache_;
};

}  // namespace

std::unique_ptr<Workload> make_model_workload(const Context& context,
                                              std::shared_ptr<const Graph> graph,
                                              const ModelProblem& problem,
                                              const WorkloadOptions& options,
                                              const ParametersOf& parameters_of) {
  return std::make_unique<ModelWorkload>(context, std::move(graph), problem, options,
                                         parameters_of);
}

}  // namespace wide::catalog
