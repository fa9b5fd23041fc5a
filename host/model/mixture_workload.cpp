// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/mixture_workload.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "wide/embedding.hpp"
#include "wide/routed_linear.hpp"
#include "wide/routing.hpp"
#include "wide/top_k.hpp"

namespace wide::catalog {

namespace {

/// One launch each, where auto might be a launch for each member.
constexpr const char *kBest = "wide", *kOfOneMember = "sequential";

template <class T>
Tensor uploaded(const Context& context, Dtype dtype, const std::vector<T>& numbers) {
  const Shape shape{static_cast<int64_t>(numbers.size())};
  Tensor tensor(context, dtype, shape);
  const OwnedStream stream(context);
  copy(ConstTensorView(numbers.data(), dtype, shape, Device{}), tensor, stream.get());
  context.synchronize(stream.get());
  return tensor;
}

/// The same elements in another shape.
template <class View>
View as(const View& dense, const Shape& shape) {
  return View(dense.data, dense.dtype, shape, dense.device);
}

Shape with_rows(Shape shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

int64_t row_elements(const Shape& shape) {
  return num_elements(shape) / shape[0];
}

/// `count` rows from `first` on.
TensorView rows_of(Tensor& all, int64_t first, int64_t count) {
  return all.view().narrow(0, first, count);
}

class MixtureBaseline {
 public:
  MixtureBaseline(const Context& context, const ModelProblem& problem, const RandomRouting& routing,
                  MixtureOperands operands)
      : context_(context),
        problem_(problem),
        operands_(std::move(operands)),
        num_rows_(problem.batch * problem.choices),
        first_rows_(context, Dtype::int32, {problem.num_members + 1}),
        order_(context, Dtype::int32, {num_rows_}) {
    std::vector<int64_t> order(static_cast<size_t>(num_rows_)), inputs, places(order.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto member_of = [&](int64_t row) { return routing.members[static_cast<size_t>(row)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return member_of(a) < member_of(b); });
    for (size_t i = 0; i < order.size(); ++i) {
      inputs.push_back(order[i] / problem.choices);
      places[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    std::vector<int64_t> offsets;
    for (int64_t row = 0; row <= num_rows_; row += problem.choices) offsets.push_back(row);
    input_rows_ = uploaded(context, Dtype::int64, inputs);
    places_ = uploaded(context, Dtype::int64, places);
    offsets_ = uploaded(context, Dtype::int64, offsets);
    all_rows_ = uploaded(context, Dtype::int32, std::vector{0, static_cast<int32_t>(num_rows_)});
    add_routing();
    for (const ConstTensorView& x : operands_.inputs) add_gathering(x);
    for (const TensorView& y : operands_.outputs) add_sum(y);
  }

  /// On the next rows.
  void add_member(const Graph& graph, const MemberParameters& parameters, int64_t rows) {
    Member& member = members_.emplace_back();
    const int64_t first = std::exchange(next_row_, next_row_ + rows);
    if (rows == 0) return;
    if (!plans_.contains(rows)) {
      plans_.emplace(rows, make_model_plan(context_, graph, {.num_members = 1, .batch = rows}));
    }
    const ModelPlan& plan = plans_.at(rows);
    member.model.emplace(context_, plan, std::span(&parameters, 1));
    for (size_t k = 0; k < gathered_.size(); ++k) {
      member.inputs.push_back(as(rows_of(gathered_[k], first, rows), plan.inputs()[k].shape));
    }
    for (size_t k = 0; k < results_.size(); ++k) {
      member.outputs.push_back(as(rows_of(results_[k], first, rows), plan.outputs()[k].shape));
    }
    workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes());
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }
  void before(const Execution& execution) const {
    for (const auto& call : before_) call(execution);
  }
  void run(int64_t index, const Execution& execution) const {
    const Member& member = members_[static_cast<size_t>(index)];
    if (member.model) member.model->run({member.inputs, member.outputs}, execution);
  }
  void after(const Execution& execution) const {
    for (const auto& call : after_) call(execution);
  }

 private:
  using Calls = std::vector<std::function<void(const Execution&)>>;
  struct Member {
    std::optional<const Model> model;  ///< none of a member without rows
    std::vector<ConstTensorView> inputs;
    std::vector<TensorView> outputs;
  };

  template <class Plan, class Arguments>
  void add(Calls& calls, const Plan& plan, const Arguments& arguments) {
    workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes());
    calls.push_back([=](const Execution& execution) { plan.run(arguments, execution); });
  }

  void add_routing() {
    ConstTensorView ids = operands_.router_inputs[0];
    if (problem_.router == Router::gated_ids) gates_ = operands_.router_inputs[1];
    if (problem_.router == Router::scores) {
      const Shape shape{problem_.batch, problem_.choices};
      chosen_ = Tensor(context_, Dtype::int32, shape);
      chosen_gates_ = Tensor(context_, Dtype::fp32, shape);
      const TopKArguments arguments{
          .scores = operands_.router_inputs[0], .ids = chosen_, .gates = chosen_gates_};
      TopKProblem like;
      like.gate = problem_.gate;
      add(before_, make_top_k_plan(context_, describe_top_k(arguments, like), {.strategy = kBest}),
          arguments);
      ids = chosen_, gates_ = chosen_gates_;
    }
    const RoutingArguments arguments{.ids = ids, .first_rows = first_rows_, .order = order_};
    add(before_, make_routing_plan(context_, describe_routing(arguments), {.strategy = kBest}),
        arguments);
  }

  void add_gathering(const ConstTensorView& x) {
    gathered_.emplace_back(context_, x.dtype, with_rows(x.shape, num_rows_));
    const int64_t row = row_elements(x.shape);
    const EmbeddingArguments arguments{.ids = as(ConstTensorView(input_rows_), {1, num_rows_}),
                                       .table = as(x, {1, problem_.batch, row}),
                                       .y = as(TensorView(gathered_.back()), {1, num_rows_, row})};
    add(before_,
        make_embedding_plan(context_, describe_embedding(arguments), {.strategy = kOfOneMember}),
        arguments);
  }

  void add_sum(const TensorView& y) {
    results_.emplace_back(context_, y.dtype, with_rows(y.shape, num_rows_));
    const int64_t row = row_elements(y.shape);
    const TensorView results = as(TensorView(results_.back()), {num_rows_, row});
    if (gates_.data != nullptr) add_gates(results);
    const EmbeddingArguments arguments{.ids = places_,
                                       .table = as(results, {1, num_rows_, row}),
                                       .y = as(y, {problem_.batch, row}),
                                       .offsets = offsets_};
    EmbeddingProblem like;
    like.bag = Bag::sum;
    add(after_,
        make_embedding_plan(context_, describe_embedding(arguments, like),
                            {.strategy = kOfOneMember}),
        arguments);
  }

  /// results *= gates: a routed_linear without inputs, whose residual they are.
  void add_gates(const TensorView& results) {
    const int64_t row = results.shape[1];
    const RoutedLinearArguments arguments{.x = as(results, {num_rows_, 0}),
                                          .weight = as(results, {1, row, 0}),
                                          .y = results,
                                          .residual = results,
                                          .gates = as(gates_, {num_rows_}),
                                          .first_rows = all_rows_,
                                          .order = order_};
    RoutedLinearProblem like;
    like.epilogue.residual = Residual::before_activation;
    add(after_,
        make_routed_linear_plan(context_, describe_routed_linear(arguments, like),
                                {.strategy = kOfOneMember}),
        arguments);
  }

  Context context_;
  ModelProblem problem_;
  MixtureOperands operands_;
  int64_t num_rows_;
  int64_t next_row_ = 0, workspace_bytes_ = 0;
  Tensor input_rows_, places_, offsets_, all_rows_;  ///< given
  Tensor chosen_, chosen_gates_, first_rows_, order_;
  ConstTensorView gates_;                   ///< absent: there are none
  std::vector<Tensor> gathered_, results_;  ///< in the order of members
  std::map<int64_t, ModelPlan> plans_;      ///< of one member, by its rows
  std::vector<Member> members_;
  Calls before_, after_;
};

}  // namespace

PreparedMembers make_mixture_baseline(const Context& context, const Graph& graph,
                                      const ModelProblem& problem, const RandomRouting& routing,
                                      std::span<const MemberParameters> members,
                                      MixtureOperands operands) {
  const auto baseline =
      std::make_shared<MixtureBaseline>(context, problem, routing, std::move(operands));
  for (int64_t m = 0; m < problem.num_members; ++m) {
    const auto rows = std::count(routing.members.begin(), routing.members.end(), m);
    baseline->add_member(graph, members[static_cast<size_t>(m)], rows);
  }
  return {.run = [=](int64_t member, const Execution& e) { baseline->run(member, e); },
          .workspace_bytes = baseline->workspace_bytes(),
          .before = [=](const Execution& e) { baseline->before(e); },
          .after = [=](const Execution& e) { baseline->after(e); }};
}

}  // namespace wide::catalog
