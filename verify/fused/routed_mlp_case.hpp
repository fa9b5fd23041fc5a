// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of routed_mlp with known small integers, whose results are exact in every dtype. An
// output adds one or two inputs of either sign, so that values stay small however many layers
// there are; the expected ones come from a formula, so a wrong index shows as a wrong number.
#pragma once

#include <string>
#include <vector>

#include "verify/linear/routing_case.hpp"
#include "wide/routed_mlp.hpp"

namespace wide::test {

/// The networks as mlp has them, which tells where their weights lie.
inline MlpProblem networks_of(const RoutedMlpProblem& p) {
  MlpProblem mlp;
  mlp.num_members = p.num_members;
  mlp.widths = p.widths;
  mlp.dtype = p.dtype;
  mlp.has_bias = p.has_bias;
  return mlp;
}

class PlacedRoutedMlp {
 public:
  /// Operands but for the weights begin `misalign` elements behind an aligned address, with NaN in
  /// all gaps, also between members' weights.
  PlacedRoutedMlp(TestDevice& bench, const RoutedMlpProblem& problem, const Routing& routing,
                  int64_t misalign = 0)
      : bench_(bench),
        problem_(problem),
        elements_(mlp_member_elements(networks_of(problem))),
        y_(bench, problem.dtype, problem.num_rows * y_row(), misalign),
        x_(bench, problem.dtype, rows_of_x() * x_row(), misalign),
        weights_(bench, problem.dtype, problem.num_members * member_stride(), 0),
        gates_(bench, Dtype::fp32, problem.num_rows, misalign),
        routing_(bench, routing, misalign) {
    for (int64_t row = 0; row < rows_of_x(); ++row) {
      for (int64_t i = 0; i < problem.widths.front(); ++i) {
        x_.put(row * x_row() + i, routed_x_value(row, i));
      }
    }
    x_.upload(bench);
    for (int64_t row = 0; row < problem.num_rows; ++row) gates_.put(row, gate_value(row));
    gates_.upload(bench);
    for (int64_t n = 0; n < problem.num_members; ++n) put_weights(n);
    weights_.upload(bench);
    y_.upload(bench);
  }

  /// Another routing in the same memory; y is as at first.
  void route(const Routing& routing) {
    routing_.route(routing);
    y_.upload(bench_);
  }

  RoutedMlpArguments arguments() {
    const RoutedMlpProblem& p = problem_;
    RoutedMlpArguments arguments{
        .x = x_.view({rows_of_x(), p.widths.front()}, {x_row(), 1}),
        .weights = weights_.view({p.num_members, elements_}, {member_stride(), 1}),
        .y = y_.view({p.num_rows, p.widths.back()}, {y_row(), 1}),
        .first_rows = routing_.first_rows(),
        .order = routing_.order()};
    if (p.has_gates) arguments.gates = gates_.view({p.num_rows});
    return arguments;
  }

  /// Every output, and that nothing else was written.
  void check() {
    std::vector<std::byte> expected = y_.contents();
    routing_.for_each_row([&](int64_t member, int64_t row, int64_t j) {
      const std::vector<double> values =
          member == PlacedRouting::kOfNone
              ? std::vector<double>(static_cast<size_t>(problem_.widths.back()))
              : expected_values(member, row, j);
      const int64_t to = problem_.scatters ? row : j;
      for (size_t o = 0; o < values.size(); ++o) {
        y_.put(expected, to * y_row() + static_cast<int64_t>(o), values[o]);
      }
    });
    y_.require(bench_, expected);
    check_inputs();
  }

  /// Whatever else y has.
  void check_gaps() const {
    test::check_gaps(bench_, y_, problem_.num_rows, problem_.widths.back(), y_row());
  }

  void check_inputs() const {
    for (const PlacedStorage* one : {&x_, &weights_, &gates_}) one->require_unchanged(bench_);
    routing_.require_unchanged();
  }

  /// As y lies, gaps included.
  std::vector<std::byte> outputs() const { return y_.download(bench_); }

 private:
  int64_t x_row() const {
    return problem_.x_row_stride == 0 ? problem_.widths.front() : problem_.x_row_stride;
  }
  int64_t y_row() const {
    return problem_.y_row_stride == 0 ? problem_.widths.back() : problem_.y_row_stride;
  }
  int64_t member_stride() const {
    return problem_.weights_member_stride == 0 ? elements_ : problem_.weights_member_stride;
  }
  int64_t rows_of_x() const { return problem_.num_rows / problem_.choices; }

  static double bias_value(int64_t member, int64_t layer, int64_t o) {
    return static_cast<double>((member + layer + o * 2) % 3) - 1;
  }
  /// The two inputs of an output, from the fifth layer on the first only: which, and by what.
  static int64_t input_of(int64_t member, int64_t layer, int64_t o, int64_t which, int64_t in) {
    return (o * 3 + member * 5 + layer + which * (o + member + 1)) % in;
  }
  static double sign_of(int64_t member, int64_t layer, int64_t o, int64_t which) {
    return (member + layer + o / 2 + which) % 3 == 0 ? -1 : 1;
  }
  static int64_t num_inputs(int64_t layer) { return layer < 4 ? 2 : 1; }

  void put_weights(int64_t member) {
    const RoutedMlpProblem& p = problem_;
    const int64_t begin = member * member_stride();
    for (int64_t i = 0; i < elements_; ++i) weights_.put(begin + i, 0);
    const std::vector<MlpLayerPlace> places = mlp_layer_places(networks_of(p));
    for (size_t l = 0; l < places.size(); ++l) {
      const auto layer = static_cast<int64_t>(l);
      const int64_t in = p.widths[l];
      for (int64_t o = 0; o < p.widths[l + 1]; ++o) {
        if (p.has_bias) weights_.put(begin + places[l].bias + o, bias_value(member, layer, o));
        std::vector<double> row(static_cast<size_t>(in));
        for (int64_t which = 0; which < num_inputs(layer); ++which) {
          row[static_cast<size_t>(input_of(member, layer, o, which, in))] +=
              sign_of(member, layer, o, which);
        }
        for (int64_t i = 0; i < in; ++i) {
          weights_.put(begin + places[l].weight + o * places[l].row + i,
                       row[static_cast<size_t>(i)]);
        }
      }
    }
  }

  /// Of row `row`, the j-th in routed order.
  std::vector<double> expected_values(int64_t member, int64_t row, int64_t j) const {
    const RoutedMlpProblem& p = problem_;
    std::vector<double> values;
    for (int64_t i = 0; i < p.widths.front(); ++i) {
      values.push_back(routed_x_value(p.gathers ? row / p.choices : j, i));
    }
    for (size_t l = 0; l + 1 < p.widths.size(); ++l) {
      const auto layer = static_cast<int64_t>(l);
      const bool is_last = l + 2 == p.widths.size();
      std::vector<double> next;
      for (int64_t o = 0; o < p.widths[l + 1]; ++o) {
        double sum = p.has_bias ? bias_value(member, layer, o) : 0;
        for (int64_t which = 0; which < num_inputs(layer); ++which) {
          const int64_t i = input_of(member, layer, o, which, p.widths[l]);
          sum += sign_of(member, layer, o, which) * values[static_cast<size_t>(i)];
        }
        const Activation activation = is_last ? p.last_activation : p.activation;
        if (activation == Activation::relu && sum < 0) sum = 0;
        next.push_back(is_last && p.has_gates ? sum * gate_value(row) : sum);
      }
      values = std::move(next);
    }
    return values;
  }

  TestDevice& bench_;
  RoutedMlpProblem problem_;
  int64_t elements_;
  PlacedStorage y_, x_, weights_, gates_;
  PlacedRouting routing_;
};

/// Places, runs and checks.
inline void check_routed_mlp(TestDevice& bench, const RoutedMlpProblem& problem,
                             const Routing& routing, const std::string& strategy,
                             int64_t misalign = 0) {
  const RoutedMlpPlan plan = make_routed_mlp_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRoutedMlp placed(bench, problem, routing, misalign);
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
}

/// A problem that a routing of these members fits.
inline RoutedMlpProblem routed_mlp_problem(const Routing& routing, std::vector<int64_t> widths,
                                           Dtype dtype = Dtype::fp32) {
  RoutedMlpProblem problem;
  problem.num_members = static_cast<int64_t>(routing.first_rows.size()) - 1;
  problem.num_rows = routing.num_rows();
  problem.widths = std::move(widths);
  problem.dtype = dtype;
  problem.has_bias = true;
  return problem;
}

}  // namespace wide::test
