// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts, from x to the sum of what each row's experts make of it: five calls of
// which none asks the host which rows are whose (include/wide/top_k.hpp), and the same by plain
// loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "verify/support/dice.hpp"
#include "verify/support/tensors.hpp"
#include "wide/ensemble.hpp"
#include "wide/linear.hpp"
#include "wide/routed_mlp.hpp"
#include "wide/top_k.hpp"

namespace wide::test {

/// Sizes and parameters. Scores are whole numbers, exact in every dtype, so that which experts are
/// chosen is as certain as what is computed, equals included.
struct Mixture {
  int64_t batch = 21, choices = 2, experts = 6, in = 24, hidden = 40, out = 17;
  GateFunction gate = GateFunction::softmax;
  std::vector<double> router = whole(experts * in, 2, 1);
  std::vector<double> up = uniform(experts * hidden * in, -1, 1, 2);
  std::vector<double> up_bias = uniform(experts * hidden, -1, 1, 3);
  std::vector<double> down = uniform(experts * out * hidden, -1, 1, 4);
  std::vector<double> down_bias = uniform(experts * out, -1, 1, 5);

  std::vector<double> x(uint64_t seed) const { return whole(batch * in, 1, seed); }

  static std::vector<double> whole(int64_t count, int64_t most, uint64_t seed) {
    Dice dice(seed);
    std::vector<double> values(static_cast<size_t>(count));
    for (double& value : values) value = static_cast<double>(dice.between(-most, most));
    return values;
  }

  /// [batch, out]
  std::vector<double> expected(const std::vector<double>& x) const {
    std::vector<double> y;
    for (int64_t row = 0; row < batch; ++row) {
      const std::vector<double> scores = product(router, {}, 0, part(x, row, in), experts);
      std::vector<int64_t> order(static_cast<size_t>(experts));
      std::iota(order.begin(), order.end(), int64_t{0});
      const auto score = [&](int64_t expert) { return scores[static_cast<size_t>(expert)]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<double> sum(static_cast<size_t>(out), 0.0);
      const bool is_of_all = gate == GateFunction::softmax_all;
      double powers = 0;
      for (int64_t k = 0; k < (is_of_all ? experts : choices); ++k) {
        powers += std::exp(score(order[static_cast<size_t>(k)]));
      }
      for (int64_t k = 0; k < choices; ++k) {
        const int64_t expert = order[static_cast<size_t>(k)];
        std::vector<double> h = product(up, up_bias, expert, part(x, row, in), hidden);
        for (double& value : h) value = std::max(value, 0.0);
        const std::vector<double> y_of_expert = product(down, down_bias, expert, h, out);
        for (size_t o = 0; o < sum.size(); ++o) {
          sum[o] += std::exp(score(expert)) / powers * y_of_expert[o];
        }
      }
      y.insert(y.end(), sum.begin(), sum.end());
    }
    return y;
  }

  static std::vector<double> part(const std::vector<double>& values, int64_t index, int64_t size) {
    const auto first = values.begin() + index * size;
    return {first, first + size};
  }

 private:
  /// A layer of one expert; no bias: none.
  static std::vector<double> product(const std::vector<double>& weight,
                                     const std::vector<double>& bias, int64_t expert,
                                     const std::vector<double>& x, int64_t rows) {
    const auto length = static_cast<int64_t>(x.size());
    std::vector<double> y;
    for (int64_t o = 0; o < rows; ++o) {
      const int64_t row = expert * rows + o;
      const std::vector<double> own = part(weight, row, length);
      const double start = bias.empty() ? 0 : bias[static_cast<size_t>(row)];
      y.push_back(std::inner_product(own.begin(), own.end(), x.begin(), start));
    }
    return y;
  }
};

/// The calls, by strategies as named, for experts [first, first + count) of all.
class MixtureCalls {
 public:
  struct Strategies {
    std::string linear = "auto", routed_mlp = "auto", others = "auto";
  };

  MixtureCalls(const Context& context, const Mixture& m, Dtype dtype, const Strategies& by,
               int64_t first, int64_t count)
      : context_(context),
        x_(context, dtype, {m.batch, m.in}),
        router_(upload(context, dtype, {1, m.experts, m.in}, m.router)),
        scores_(context, dtype, {m.batch, m.experts}),
        ids_(context, Dtype::int64, {m.batch, m.choices}),
        gates_(context, Dtype::fp32, {m.batch, m.choices}),
        first_rows_(context, Dtype::int32, {count + 1}),
        order_(context, Dtype::int32, {m.batch * m.choices}),
        parts_(context, dtype, {m.batch, m.choices * m.out}),
        y_(context, dtype, {m.batch, m.out}) {
    const int64_t rows = m.batch * m.choices;

    add(make_linear_plan, describe_linear,
        LinearArguments{.x = x_, .weight = router_, .y = scores_}, LinearProblem{.num_members = 1},
        by.linear);
    add(make_top_k_plan, describe_top_k,
        TopKArguments{.scores = scores_, .ids = ids_, .gates = gates_}, TopKProblem{.gate = m.gate},
        by.others);
    add(make_routing_plan, describe_routing,
        RoutingArguments{.ids = ids_, .first_rows = first_rows_, .order = order_},
        RoutingProblem{.first_id = first}, by.others);

    RoutedMlpProblem experts{
        .num_members = count, .num_rows = rows, .widths = {m.in, m.hidden, m.out}};
    experts.dtype = dtype;
    experts.gathers = experts.scatters = experts.has_gates = experts.has_bias = true;
    experts.choices = m.choices;
    pack_experts(m, experts, first);
    add(make_routed_mlp_plan, describe_routed_mlp,
        RoutedMlpArguments{.x = x_,
                           .weights = weights_,
                           .y = parts_,
                           .gates = gates_,
                           .first_rows = first_rows_,
                           .order = order_},
        experts, by.routed_mlp);
    add(make_ensemble_plan, describe_ensemble, EnsembleArguments{.x = parts_, .y = y_},
        EnsembleProblem{.num_members = m.choices, .function = EnsembleFunction::sum}, by.others);
    workspace_ = Tensor(context, Dtype::uint8, {workspace_bytes_});
  }

  void set_x(const std::vector<double>& values, Stream stream) {
    const Tensor from = upload(context_, x_.dtype(), x_.shape(), values);
    copy(from, x_, stream);
    context_.synchronize(stream);
  }

  void run(Stream stream) {
    const Execution execution{stream, {workspace_.data(), workspace_.bytes()}};
    for (const auto& call : calls_) call(execution);
  }

  std::vector<double> y() const { return download(context_, y_); }

 private:
  /// A plan for these operands, to run after those before.
  template <class Make, class Describe, class Arguments, class Problem>
  void add(const Make& make, const Describe& describe, const Arguments& arguments,
           const Problem& like, const std::string& strategy) {
    const auto plan = make(context_, describe(arguments, like), PlanOptions{.strategy = strategy});
    workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes());
    calls_.push_back(
        [plan, arguments](const Execution& execution) { plan.run(arguments, execution); });
  }

  void pack_experts(const Mixture& m, const RoutedMlpProblem& problem, int64_t first) {
    std::vector<Tensor> owned;
    std::vector<MlpMember> members;
    const auto layer = [&](const std::vector<double>& weight, const std::vector<double>& bias,
                           int64_t expert, int64_t in, int64_t out) {
      owned.push_back(
          upload(context_, problem.dtype, {out, in}, Mixture::part(weight, expert, out * in)));
      const ConstTensorView own = owned.back();
      owned.push_back(upload(context_, problem.dtype, {out}, Mixture::part(bias, expert, out)));
      return BasicMlpLayer<ConstTensorView>{own, owned.back()};
    };
    for (int64_t expert = first; expert < first + problem.num_members; ++expert) {
      members.push_back({{layer(m.up, m.up_bias, expert, m.in, m.hidden),
                          layer(m.down, m.down_bias, expert, m.hidden, m.out)}});
    }
    MlpProblem networks{.num_members = problem.num_members, .widths = problem.widths};
    networks.dtype = problem.dtype;
    networks.has_bias = true;
    weights_ =
        Tensor(context_, problem.dtype, {problem.num_members, mlp_member_elements(networks)});
    const OwnedStream stream(context_);
    make_routed_mlp_plan(context_, problem).prepare_weights(members, weights_, stream.get());
    context_.synchronize(stream.get());
  }

  Context context_;
  Tensor x_, router_, scores_, ids_, gates_, first_rows_, order_, weights_, parts_, y_;
  Tensor workspace_;
  int64_t workspace_bytes_ = 0;
  std::vector<std::function<void(const Execution&)>> calls_;
};

}  // namespace wide::test
