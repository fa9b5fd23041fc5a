// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/fused/routed_mlp_problem.hpp"

#include <string>

#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_rows.hpp"

namespace wide {

MlpProblem mlp_of(const RoutedMlpProblem& problem, int64_t batch) {
  MlpProblem mlp;
  mlp.num_members = problem.num_members;
  mlp.batch = batch;
  mlp.widths = problem.widths;
  mlp.dtype = problem.dtype;
  mlp.allow_tf32 = problem.allow_tf32;
  mlp.has_bias = problem.has_bias;
  mlp.activation = problem.activation;
  mlp.last_activation = problem.last_activation;
  mlp.weights_member_stride = problem.weights_member_stride;
  return mlp;
}

std::vector<RoutedLinearProblem> routed_mlp_layers(const RoutedMlpProblem& p) {
  const std::vector<MlpLayerPlace> places = mlp_layer_places(mlp_of(p));
  std::vector<RoutedLinearProblem> layers;
  for (size_t l = 0; l < places.size(); ++l) {
    const bool is_first = l == 0, is_last = l + 1 == places.size();
    RoutedLinearProblem layer;
    layer.num_members = p.num_members;
    layer.num_rows = p.num_rows;
    layer.in_features = p.widths[l];
    layer.out_features = p.widths[l + 1];
    layer.dtype = p.dtype;
    layer.allow_tf32 = p.allow_tf32;
    layer.epilogue.has_bias = p.has_bias;
    layer.epilogue.activation = is_last ? p.last_activation : p.activation;
    layer.weight = {places[l].row, p.weights_member_stride};
    layer.bias_member_stride = p.has_bias ? p.weights_member_stride : 0;
    if (is_first) {
      layer.gathers = p.gathers, layer.choices = p.choices;
      layer.x_row_stride = p.x_row_stride;
    }
    if (is_last) {
      layer.scatters = p.scatters, layer.has_gates = p.has_gates;
      layer.y_row_stride = p.y_row_stride;
    }
    layers.push_back(complete_routed_linear_problem(layer));
  }
  return layers;
}

RoutedMlpProblem complete_routed_mlp_problem(RoutedMlpProblem p) {
  const MlpProblem mlp = mlp_of(p);
  check_mlp_sizes(kRoutedMlpName, mlp);
  check_routed_rows(kRoutedMlpName, p.num_rows, p.gathers, p.choices);
  require_at_least(kRoutedMlpName, "x_row_stride", p.x_row_stride, 0);
  require_at_least(kRoutedMlpName, "y_row_stride", p.y_row_stride, 0);
  p.weights_member_stride = complete_mlp_weights_stride(kRoutedMlpName, mlp);
  const std::vector<RoutedLinearProblem> layers = routed_mlp_layers(p);
  p.x_row_stride = layers.front().x_row_stride;
  p.y_row_stride = layers.back().y_row_stride;
  return p;
}

constexpr auto kRoutedMlpFields = [](const auto& same, const RoutedMlpProblem& got,
                                     const RoutedMlpProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("num_members", got.num_members, plan.num_members);
  same("num_rows", got.num_rows, plan.num_rows);
  same("choices", got.choices, plan.choices);
  same.presence("gates", got.has_gates, plan.has_gates);
  same("row stride of x", got.x_row_stride, plan.x_row_stride);
  same("row stride of y", got.y_row_stride, plan.y_row_stride);
  same("member stride of weights", got.weights_member_stride, plan.weights_member_stride);
  same("widths", got.widths, plan.widths);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same("gathers", got.gathers, plan.gathers);
  same("scatters", got.scatters, plan.scatters);
  same("has_bias", got.has_bias, plan.has_bias);
  same("activation", got.activation, plan.activation);
  same("last_activation", got.last_activation, plan.last_activation);
};

void require_same_routed_mlp_problem(const RoutedMlpProblem& got, const RoutedMlpProblem& plan) {
  require_same_problem(kRoutedMlpName, got, plan, kRoutedMlpFields);
}
std::string problem_key(const RoutedMlpProblem& complete) {
  return key_of_fields(complete, kRoutedMlpFields);
}
TuningKey tuning_key(const RoutedMlpProblem& problem) {
  return {std::string(kRoutedMlpName), problem_key(complete_routed_mlp_problem(problem))};
}

}  // namespace wide
