// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/fused/mlp_problem.hpp"

#include <limits>
#include <string>

#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/text.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

int64_t multiple_above(int64_t value, int64_t step) {
  int64_t rounded = 0;
  WIDE_REQUIRE(!__builtin_add_overflow(value, step - 1, &rounded),
               "mlp: widths has " + text(value) + ", expected what fits in 64 bits");
  return rounded / step * step;
}

/// Elements that rows and biases are padded to a multiple of.
int64_t row_step(Dtype dtype) {
  return 32 / dtype_bytes(dtype);
}

/// f(place), layer by layer, of a problem whose sizes are checked. Returns the end.
template <class F>
int64_t for_each_place(const MlpProblem& p, const F& f) {
  int64_t end = 0;
  const auto take = [&](int64_t elements) {
    const int64_t first = end;
    WIDE_REQUIRE(!__builtin_add_overflow(end, elements, &end),
                 "mlp: weights of widths " + mlp_widths_text(p) +
                     " do not fit in 64 bits, expected smaller ones");
    return first;
  };
  const auto bias_elements = [&](size_t layer) {
    return p.has_bias ? multiple_above(p.widths[layer + 1], row_step(p.dtype)) : 0;
  };
  const size_t layers = p.widths.size() - 1;
  for (size_t l = 0; l < layers; ++l) take(bias_elements(l));
  int64_t bias = 0;
  for (size_t l = 0; l < layers; ++l) {
    const int64_t row = mlp_row_elements(p.widths[l], p.dtype);
    f(MlpLayerPlace{bias, take(num_elements({p.widths[l + 1], row})), row});
    bias += bias_elements(l);
  }
  (void)checked_bytes({end}, dtype_bytes(p.dtype));
  return end;
}

}  // namespace

void check_mlp_sizes(std::string_view name, const MlpProblem& p) {
  require_at_least(name, "num_members", p.num_members, 1);
  require_at_least(name, "batch", p.batch, 0);
  WIDE_REQUIRE(p.widths.size() >= 2, std::string(name) + ": widths has " +
                                         counted(p.widths.size(), "entry", "entries") +
                                         ", expected in and out at least: 2");
  for (size_t i = 0; i < p.widths.size(); ++i) {
    WIDE_REQUIRE(p.widths[i] >= 1, std::string(name) + ": widths[" + text(i) + "] is " +
                                       text(p.widths[i]) + ", expected >= 1");
  }
  require_float_dtype(name, p.dtype);
  require_enumerator(name, "activation", p.activation, kAllActivations.back());
  require_enumerator(name, "last_activation", p.last_activation, kAllActivations.back());
}

int64_t mlp_row_elements(int64_t in_features, Dtype dtype) {
  return multiple_above(in_features, row_step(dtype)) + kMlpAlignment / dtype_bytes(dtype);
}

std::string mlp_widths_text(const MlpProblem& problem) {
  std::string widths;
  for (const int64_t width : problem.widths) {
    widths += (widths.empty() ? "" : "-") + text(width);
  }
  return widths;
}

std::vector<MlpLayerPlace> mlp_layer_places(const MlpProblem& problem) {
  check_mlp_sizes(kMlpName, problem);
  std::vector<MlpLayerPlace> places;
  (void)for_each_place(problem, [&](const MlpLayerPlace& place) { places.push_back(place); });
  return places;
}

int64_t mlp_member_elements(const MlpProblem& problem) {
  check_mlp_sizes(kMlpName, problem);
  return for_each_place(problem, [](const MlpLayerPlace&) {});
}

std::vector<LinearProblem> mlp_layers(const MlpProblem& p, int64_t members) {
  const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
  std::vector<LinearProblem> layers;
  for (size_t l = 0; l < places.size(); ++l) {
    const bool is_first = l == 0, is_last = l + 1 == places.size();
    LinearProblem layer;
    layer.num_members = members;
    layer.batch = p.batch;
    layer.in_features = p.widths[l];
    layer.out_features = p.widths[l + 1];
    layer.dtype = p.dtype;
    layer.allow_tf32 = p.allow_tf32;
    layer.shared_input = is_first && p.shared_input && (members > 1 || p.num_members == 1);
    layer.epilogue.has_bias = p.has_bias;
    layer.epilogue.activation = is_last ? p.last_activation : p.activation;
    layer.weight = {places[l].row, p.weights_member_stride};
    layer.bias_member_stride = p.has_bias ? p.weights_member_stride : 0;
    if (is_first) layer.x = p.x;
    if (is_last) layer.y = p.y;
    layers.push_back(complete_linear_problem(layer));
  }
  return layers;
}

int64_t complete_mlp_weights_stride(std::string_view name, const MlpProblem& p) {
  const int64_t elements = mlp_member_elements(p), vector = kMlpAlignment / dtype_bytes(p.dtype);
  const bool is_packed = p.num_members == 1 || p.weights_member_stride == 0;
  const int64_t stride = is_packed ? elements : p.weights_member_stride;
  WIDE_REQUIRE(stride >= elements && stride % vector == 0,
               std::string(name) + ": weights has member stride " + text(stride) +
                   ", expected a multiple of " + text(vector) + ", at least " + text(elements));
  int64_t all = 0;
  WIDE_REQUIRE(!__builtin_mul_overflow(stride, p.num_members, &all) &&
                   all <= std::numeric_limits<int64_t>::max() / dtype_bytes(p.dtype),
               std::string(name) + ": weights of " + counted(p.num_members, "member") +
                   " with member stride " + text(stride) +
                   ", expected an extent that fits in 64 bits");
  return stride;
}

MlpProblem complete_mlp_problem(MlpProblem p) {
  p.weights_member_stride = complete_mlp_weights_stride(kMlpName, p);
  const std::vector<LinearProblem> layers = mlp_layers(p, p.num_members);
  p.x = layers.front().x;
  p.y = layers.back().y;
  return p;
}

constexpr auto kMlpFields = [](const auto& same, const MlpProblem& got, const MlpProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("num_members", got.num_members, plan.num_members);
  same("batch", got.batch, plan.batch);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("member stride of weights", got.weights_member_stride, plan.weights_member_stride);
  same("widths", got.widths, plan.widths);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same("shared_input", got.shared_input, plan.shared_input);
  same("has_bias", got.has_bias, plan.has_bias);
  same("activation", got.activation, plan.activation);
  same("last_activation", got.last_activation, plan.last_activation);
};

void require_same_mlp_problem(const MlpProblem& got, const MlpProblem& plan) {
  require_same_problem("mlp", got, plan, kMlpFields);
}
std::string problem_key(const MlpProblem& complete) {
  return key_of_fields(complete, kMlpFields);
}
TuningKey tuning_key(const MlpProblem& problem) {
  return {"mlp", problem_key(complete_mlp_problem(problem))};
}

bool is_empty(const MlpProblem& problem) {
  return problem.batch == 0;
}

}  // namespace wide
