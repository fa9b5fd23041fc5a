// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// N members as one model against each as a model of its own, and both against the graph in double.
// Routed rows are those of all members, shuffled, in one batch, and their members' ids beside it; a
// model of one member has its rows together. Those of a mixture are shared inputs, and so are its
// sums; who runs them follows from random scores.
#include "host/model/model_workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "host/core/check.hpp"
#include "host/core/cpu_device.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/core/text.hpp"
#include "host/model/graph_workload.hpp"
#include "host/model/mixture_workload.hpp"
#include "host/model/random_routing.hpp"
#include "host/model/routed.hpp"
#include "host/model/step_workload.hpp"
#include "host/operand.hpp"
#include "host/routed_workload.hpp"
#include "host/spec.hpp"
#include "wide/models.hpp"

namespace wide::catalog {

namespace {

/// How a strategy compiles. The automatic choices are `compiled` with automatic choices for its
/// steps.
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

class ModelWorkload final : public GraphWorkload {
 public:
  ModelWorkload(const Context& context, std::shared_ptr<const Graph> graph,
                const ModelProblem& problem, const WorkloadOptions& options,
                const ParametersOf& parameters_of)
      : GraphWorkload(context, problem.num_members, options, std::move(graph),
                      has_own_rows(problem) ? problem.batch / problem.num_members : problem.batch),
        problem_(problem),
        plan_(make_model_plan(context, this->graph(), problem)) {
    if (has_own_rows(problem_)) {
      std::vector<int64_t> counts(static_cast<size_t>(num_members()), batch());
      counts.push_back(0);  // nobody's
      rows_.emplace(counts);
    }
    for (size_t k = 0; k < this->graph().inputs().size(); ++k) {
      const ModelOperand& operand = plan_.inputs()[k];
      const Value input = this->graph().inputs()[k];
      inputs_.push_back(&add(operand, distribution_of(this->graph(), input)));
      input_views_.push_back(view_of(operand, *inputs_.back()));
    }
    if (rows_) input_views_.push_back(add_ids(plan_.inputs().back()).packed());
    if (is_mixture(problem_)) add_router_inputs();
    for (const ModelOperand& output : plan_.outputs()) {
      output_views_.push_back(view_of(output, add_output(add(output, Distribution::none()))));
    }
    require_available_memory(static_cast<double>(plan_.memory().weights_bytes),
                             "its members' parameters take");
    for (int64_t m = 0; m < num_members(); ++m) {
      const auto index = static_cast<size_t>(m);
      const int64_t id = index < options.member_ids.size() ? options.member_ids[index] : m;
      parameters_.push_back(parameters_of ? parameters_of(options.seed, id)
                                          : random_parameters(this->graph(), options.seed, id));
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
    if (is_mixture(problem_)) return prepare_experts();
    const ModelPlan plan =
        make_model_plan(context(), graph(), {.num_members = 1, .batch = batch()});
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
      for (size_t k = 0; k < outputs().size(); ++k) {
        member.outputs.push_back(
            as(plan.outputs()[k], outputs()[k]->member(static_cast<int64_t>(m))));
      }
      members->push_back(std::move(member));
    }
    return {[members](int64_t n, const Execution& execution) {
              const Member& member = (*members)[static_cast<size_t>(n)];
              member.model->run({member.inputs, member.outputs}, execution);
            },
            plan.workspace_bytes()};
  }

  /// At most what any strategy has to do, as times below it are taken for errors: every input once
  /// and every parameter of members that have rows, but tables, of which few rows may be read; no
  /// intermediates.
  Cost cost() const override {
    const double rows = static_cast<double>(problem_.is_routed ? rows_of_choices(problem_)
                                                               : problem_.num_members * batch());
    const ModelMemory& memory = plan_.memory();
    const double weights = static_cast<double>(memory.weights_bytes) -
                           static_cast<double>(num_members()) * embedding_table_bytes(graph());
    return {rows * least_graph_flops(graph()),
            share_of_members() * std::max(weights, 0.0) + static_cast<double>(memory.input_bytes),
            static_cast<double>(memory.output_bytes)};
  }
  int64_t footprint_bytes() const override {
    return PackedWorkload::footprint_bytes() + plan_.memory().weights_bytes +
           plan_.memory().workspace_bytes();
  }
  double reference_row_flops() const override {
    return static_cast<double>(problem_.choices) * GraphWorkload::reference_row_flops();
  }

 private:
  /// Not in a mixture, where a row may be of several.
  static bool has_own_rows(const ModelProblem& problem) {
    return problem.is_routed && !is_mixture(problem);
  }

  /// Of a mixture those that are somebody's choice.
  double share_of_members() const {
    if (!is_mixture(problem_)) return 1;
    const std::set<int64_t> chosen(routing_.members.begin(), routing_.members.end());
    return static_cast<double>(chosen.size()) / static_cast<double>(num_members());
  }

  Operand& add(const ModelOperand& operand, const Distribution& distribution) {
    if (rows_) return add_rows(operand, distribution);
    Shape shape = operand.shape;
    if (operand.is_stacked) {
      shape = Shape(std::span(operand.shape.begin() + 1, operand.shape.end()));
    } else if (operand.member_axis > 0) {
      shape[operand.member_axis] /= problem_.num_members;
    }
    return add_value(operand.name, operand.dtype, shape, operand.member_axis, distribution);
  }

  /// One tensor of all rows.
  Operand& add_rows(const ModelOperand& operand, const Distribution& distribution) {
    std::vector<MemberPlace> places;
    for (const std::vector<int64_t>& rows : rows_->of_member) {
      MemberPlace& place = places.emplace_back();
      place.shape = operand.shape, place.strides = contiguous_strides(operand.shape);
      place.shape[0] = batch(), place.rows = rows;
    }
    return add_ragged_operand(operand.name, operand.dtype, std::move(places), distribution);
  }
  /// Whose each row is.
  Operand& add_ids(const ModelOperand& operand) {
    std::vector<int64_t> ids(static_cast<size_t>(problem_.batch));
    for (size_t m = 0; m < rows_->of_member.size(); ++m) {
      for (const int64_t row : rows_->of_member[m])
        ids[static_cast<size_t>(row)] = static_cast<int64_t>(m);
    }
    return add_operand(numbers_operand(operand.name, Dtype::int64, std::move(ids)));
  }

  void add_router_inputs() {
    routing_ = random_routing_by_scores(plan_, options().seed);
    const auto operands = plan_.inputs().subspan(inputs_.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      auto description =
          numbers_operand(operands[i].name, operands[i].dtype, std::move(routing_.inputs[i]));
      description.member_shape = {num_elements(operands[i].shape)};
      router_inputs_.push_back(&add_operand(std::move(description)));
      input_views_.push_back(as(operands[i], router_inputs_.back()->packed()));
    }
  }

  PreparedMembers prepare_experts() {
    MixtureOperands operands;
    for (size_t k = 0; k < plan_.inputs().size(); ++k) {
      const bool is_given = k < inputs_.size();
      const Operand& operand = is_given ? *inputs_[k] : *router_inputs_[k - inputs_.size()];
      (is_given ? operands.inputs : operands.router_inputs)
          .push_back(as(plan_.inputs()[k], operand.member(0)));
    }
    for (size_t k = 0; k < outputs().size(); ++k) {
      operands.outputs.push_back(as(plan_.outputs()[k], outputs()[k]->member(0)));
    }
    std::vector<MemberParameters> members;
    for (size_t m = 0; m < parameters_.size(); ++m) members.push_back(views_of(m));
    return make_mixture_baseline(context(), graph(), problem_, routing_, members,
                                 std::move(operands));
  }

  TensorView view_of(const ModelOperand& operand, const Operand& values) const {
    const TensorView packed = values.packed();
    return rows_ ? TensorView(packed.data, packed.dtype, operand.shape, packed.device) : packed;
  }

  /// A dense member as a model of one member expects it.
  static TensorView as(const ModelOperand& operand, const TensorView& member) {
    return TensorView(member.data, member.dtype, operand.shape, member.device);
  }

  MemberParameters views_of(size_t member) const { return wide::views_of(parameters_[member]); }

  ModelPlan plan_for(const PlanOptions& options) const {
    ModelPlan plan = make_model_plan(context(), graph(), problem_, options_of(options));
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
      const std::string by = step.strategy + (step.is_tuned ? ", tuned" : "");
      ++counts[step.primitive + (step.strategy.empty() ? "" : " (" + by + ")")];
    }
    std::string text = counted(plan.steps().size(), "step") + ":";
    const char* separator = " ";
    for (const auto& [name, count] : counts) {
      text += separator + std::to_string(count) + " " + name;
      separator = ", ";
    }
    return text + "; " + std::to_string(plan.workspace_bytes()) + " bytes of workspace";
  }

  Values inputs_of(int64_t member, int64_t batch_row) const override {
    Values inputs;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Value input = graph().inputs()[k];
      const Shape& shape = graph().type(input).shape;
      Doubles& row = inputs[graph().name(input)];
      row.shape.assign(shape.begin(), shape.end());
      row.shape[0] = 1;
      size_t count = 1;
      for (const int64_t extent : row.shape) count *= static_cast<size_t>(extent);
      const std::span<const double> all = inputs_[k]->values(member);
      const auto own = all.subspan(static_cast<size_t>(batch_row) * count, count);
      row.values.assign(own.begin(), own.end());
    }
    return inputs;
  }
  /// Of a mixture the sum over the row's members, each times its gate, which top_k and the product
  /// round.
  std::vector<Evaluated> expected(int64_t member, int64_t batch_row) const override {
    if (!is_mixture(problem_)) return evaluated(member, batch_row);
    std::vector<Evaluated> sums;
    for (int64_t k = 0; k < problem_.choices; ++k) {
      const auto choice = static_cast<size_t>(batch_row * problem_.choices + k);
      const double gate = routing_.gates[choice];
      const std::vector<Evaluated>& own = evaluated(routing_.members[choice], batch_row);
      sums.resize(own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        const double rounding =
            0x1p-20 + 2 * unit_roundoff(this->graph().type(this->graph().outputs()[i].value).dtype);
        double largest = 0;
        sums[i].values.resize(own[i].values.size());
        for (size_t e = 0; e < own[i].values.size(); ++e) {
          sums[i].values[e] += gate * own[i].values[e];
          largest = std::max(largest, std::abs(own[i].values[e]));
        }
        sums[i].tolerance += std::abs(gate) * (own[i].tolerance + rounding * largest);
      }
    }
    return sums;
  }

  Values parameters_of(int64_t member) const override {
    Values parameters;
    for (const auto& [name, tensor] : parameters_[static_cast<size_t>(member)]) {
      parameters[name] = to_doubles(tensor);
    }
    return parameters;
  }

  ModelProblem problem_;
  ModelPlan plan_;
  std::optional<ShuffledRows> rows_;  ///< of routed rows
  RandomRouting routing_;             ///< of a mixture
  std::vector<Operand*> inputs_;      ///< the graph's
  std::vector<const Operand*> router_inputs_;
  std::vector<ConstTensorView> input_views_;
  std::vector<TensorView> output_views_;
  std::vector<OwnedParameters> parameters_;
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
