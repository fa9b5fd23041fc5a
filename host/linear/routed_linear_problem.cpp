// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks and completes problems. Offsets are computed with overflow checks once here, so that
// nothing behind it needs any.
#include "host/linear/routed_linear_problem.hpp"

#include <cmath>
#include <string>

#include "host/core/extent.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/linear/linear_weight.hpp"
#include "host/linear/routed_rows.hpp"

namespace wide {

namespace {

void require_routed_extent(const char* field, const RoutedLinearProblem& p, const Shape& shape,
                           const RowStrides& strides) {
  const int64_t members = shape[0], rows = shape[1], features = shape[2];
  const SteppedAxis axes[] = {{strides.row, rows}, {strides.member, members}};
  WIDE_REQUIRE(extent_fits(axes, features, dtype_bytes(p.dtype)),
               "routed_linear: " + std::string(field) + " of " + to_string(shape) +
                   " with strides " + text(strides) + ", expected an extent that fits in 64 bits");
}

void check_routed_sizes(const RoutedLinearProblem& p) {
  require_at_least(kRoutedLinearName, "num_members", p.num_members, 1);
  check_routed_rows(kRoutedLinearName, p.num_rows, p.gathers, p.choices);
  require_at_least(kRoutedLinearName, "in_features", p.in_features, 0);
  require_at_least(kRoutedLinearName, "out_features", p.out_features, 0);
  require_float_dtype(kRoutedLinearName, p.dtype);
  require_enumerators(kRoutedLinearName, p.epilogue);
  require_enumerator(kRoutedLinearName, "weight_format", p.weight_format, kAllWeightFormats.back());
  WIDE_REQUIRE(std::isfinite(p.epilogue.alpha),
               "routed_linear: alpha is " + text(p.epilogue.alpha) + ", expected a finite factor");
  for (const auto& [name, value] : {std::pair{"x_row_stride", p.x_row_stride},
                                    {"y_row_stride", p.y_row_stride},
                                    {"residual_row_stride", p.residual_row_stride},
                                    {"weight.row", p.weight.row},
                                    {"weight.member", p.weight.member},
                                    {"bias_member_stride", p.bias_member_stride},
                                    {"scale_member_stride", p.scale_member_stride}}) {
    require_at_least(kRoutedLinearName, name, value, 0);
  }
  const int64_t bytes = dtype_bytes(p.dtype);
  (void)checked_bytes({p.num_members, p.out_features, p.in_features}, bytes);
  (void)checked_bytes({p.num_rows, p.in_features}, bytes);
  (void)checked_bytes({p.num_rows, p.out_features}, bytes);
}

/// The packed stride where none is given, or nothing steps along it.
int64_t routed_stride(int64_t given, int64_t steps, int64_t packed) {
  return given == 0 || steps <= 1 || packed == 0 ? packed : given;
}

void complete_routed_weight(RoutedLinearProblem& p) {
  const int64_t members = p.num_members, in = p.in_features, out = p.out_features;
  if (is_quantized(p)) {
    p.weight = complete_quantized_strides(kRoutedLinearName, linear_quantized_weight(p), members,
                                          p.weight.member);
    return require_routed_extent("weight", p, {members, 1, p.weight.row}, p.weight);
  }
  p.group_size = 0;
  p.weight = fill_strides(name_of(kRoutedLinearName, "weight"), p.weight, {in, out * in}, out,
                          members, in);
  require_routed_extent("weight", p, {members, out, in}, p.weight);
}

}  // namespace

QuantizedWeight linear_quantized_weight(const RoutedLinearProblem& problem) {
  return {problem.weight_format, problem.group_size, problem.out_features, problem.in_features};
}

int64_t linear_member_bytes(const RoutedLinearProblem& problem) {
  return quantized_bytes(linear_quantized_weight(problem));
}

RoutedLinearProblem complete_routed_linear_problem(RoutedLinearProblem problem) {
  check_routed_sizes(problem);
  RoutedLinearProblem& p = problem;
  Epilogue& epilogue = p.epilogue;
  const int64_t members = p.num_members, rows = p.num_rows;
  const int64_t in = p.in_features, out = p.out_features;
  // One output per member has one factor per member, whatever it is called.
  if (epilogue.scale == OutputScale::per_output && out == 1) {
    epilogue.scale = OutputScale::per_member;
  }
  p.x_row_stride = routed_stride(p.x_row_stride, rows_of_x(p), in);
  p.y_row_stride = routed_stride(p.y_row_stride, rows, out);
  const bool has_residual = epilogue.residual != Residual::none;
  p.residual_row_stride = has_residual ? routed_stride(p.residual_row_stride, rows, out) : 0;
  complete_routed_weight(p);
  p.bias_member_stride = epilogue.has_bias ? routed_stride(p.bias_member_stride, members, out) : 0;
  const int64_t factors = epilogue.scale == OutputScale::per_output ? out : 1;
  p.scale_member_stride = epilogue.scale == OutputScale::none
                              ? 0
                              : routed_stride(p.scale_member_stride, members, factors);

  require_routed_extent("x", p, {1, rows_of_x(p), in}, {p.x_row_stride, 0});
  require_routed_extent("bias", p, {members, 1, out}, {0, p.bias_member_stride});
  require_routed_extent("scale", p, {members, 1, factors}, {0, p.scale_member_stride});
  require_routed_extent("y", p, {1, rows, out}, {p.y_row_stride, 0});
  require_routed_extent("residual", p, {1, rows, out}, {p.residual_row_stride, 0});
  WIDE_REQUIRE(p.y_row_stride >= out, "routed_linear: y_row_stride is " + text(p.y_row_stride) +
                                          ", expected >= out_features = " + text(out));
  return problem;
}

constexpr auto kRoutedLinearFields = [](const auto& same, const RoutedLinearProblem& got,
                                        const RoutedLinearProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("num_members", got.num_members, plan.num_members);
  same("num_rows", got.num_rows, plan.num_rows);
  same("in_features", got.in_features, plan.in_features);
  same("out_features", got.out_features, plan.out_features);
  same("weight_format", weight_format_name(got.weight_format),
       weight_format_name(plan.weight_format));
  same("group_size", got.group_size, plan.group_size);
  same("choices", got.choices, plan.choices);
  same.presence("bias", got.epilogue.has_bias, plan.epilogue.has_bias);
  same("scale", got.epilogue.scale, plan.epilogue.scale);
  same("residual", got.epilogue.residual, plan.epilogue.residual);
  same.presence("gates", got.has_gates, plan.has_gates);
  same("row stride of x", got.x_row_stride, plan.x_row_stride);
  same("stride of weight", got.weight, plan.weight);
  same("row stride of y", got.y_row_stride, plan.y_row_stride);
  same("row stride of residual", got.residual_row_stride, plan.residual_row_stride);
  same("member stride of bias", got.bias_member_stride, plan.bias_member_stride);
  same("member stride of scale", got.scale_member_stride, plan.scale_member_stride);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same("gathers", got.gathers, plan.gathers);
  same("scatters", got.scatters, plan.scatters);
  same("activation", got.epilogue.activation, plan.epilogue.activation);
  same("alpha", got.epilogue.alpha, plan.epilogue.alpha);
};

void require_same_routed_linear_problem(const RoutedLinearProblem& got,
                                        const RoutedLinearProblem& plan) {
  require_same_problem(kRoutedLinearName, got, plan, kRoutedLinearFields);
}
std::string problem_key(const RoutedLinearProblem& complete) {
  return key_of_fields(complete, kRoutedLinearFields);
}
TuningKey tuning_key(const RoutedLinearProblem& problem) {
  return {std::string(kRoutedLinearName), problem_key(complete_routed_linear_problem(problem))};
}

}  // namespace wide
