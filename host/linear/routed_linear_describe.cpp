// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members, in and out are read off the weight, the rows off the
// routing; the others must fit.
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/linear/linear_weight.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_rows.hpp"

namespace wide {

namespace {

void describe_routed_weight(const ConstTensorView& weight, RoutedLinearProblem& p) {
  require_routed_axes(kRoutedLinearName, "weight", weight, 3, "[num_members, out, in]");
  require_view(kRoutedLinearName, "weight", weight);
  WIDE_REQUIRE(weight.shape[0] >= 1, "routed_linear: weight is " + to_string(weight.shape) +
                                         ", expected num_members >= 1 in front");
  p.num_members = weight.shape[0], p.out_features = weight.shape[1];
  p.in_features = weight.shape[2];
  p.weight.row = p.out_features <= 1 ? p.in_features : weight.strides[1];
  p.weight.member = p.num_members == 1 ? p.out_features * p.in_features : weight.strides[0];
  const bool has_steps = p.weight.row != 0 || p.weight.member != 0;
  WIDE_REQUIRE(has_steps || p.in_features == 0 || p.out_features == 0,
               "routed_linear: weight has strides " + to_string(weight.strides) +
                   ", expected rows or members that do not all start at one place");
}

/// The blobs show neither in nor out: `like` gives them.
void describe_routed_blobs(const ConstTensorView& weight, const RoutedLinearProblem& like,
                           RoutedLinearProblem& p) {
  p.weight_format = like.weight_format;
  p.group_size = like.group_size;
  p.out_features = like.out_features, p.in_features = like.in_features;
  p.weight = describe_quantized_weight(kRoutedLinearName, weight, linear_quantized_weight(p));
  p.num_members = weight.shape[0];
}

void describe_routed_parameters(const RoutedLinearArguments& arguments, RoutedLinearProblem& p) {
  const ConstTensorView &bias = arguments.bias, &scale = arguments.scale;
  p.epilogue.has_bias = !bias.is_absent();
  if (!bias.is_absent()) {
    require_routed_axes(kRoutedLinearName, "bias", bias, 2, "[num_members, out]");
    require_dtype(kRoutedLinearName, "bias", bias, p.dtype);
    require_shape(kRoutedLinearName, "bias", bias, "[num_members, out]",
                  {p.num_members, p.out_features});
    p.bias_member_stride = require_step(kRoutedLinearName, "bias", bias);
  }
  p.epilogue.scale = OutputScale::none;
  if (scale.is_absent()) return;
  constexpr std::string_view kScale = "[num_members, 1] or [num_members, out]";
  require_routed_axes(kRoutedLinearName, "scale", scale, 2, kScale);
  require_dtype(kRoutedLinearName, "scale", scale, Dtype::fp32);
  const bool is_per_member = scale.shape[1] == 1;
  require_shape(kRoutedLinearName, "scale", scale, kScale,
                {p.num_members, is_per_member ? 1 : p.out_features});
  p.epilogue.scale = is_per_member ? OutputScale::per_member : OutputScale::per_output;
  p.scale_member_stride = require_step(kRoutedLinearName, "scale", scale);
}

void describe_routed_residual(const ConstTensorView& residual, const RoutedLinearProblem& like,
                              RoutedLinearProblem& p) {
  p.epilogue.residual = like.epilogue.residual;
  WIDE_REQUIRE(
      residual.is_absent() == (p.epilogue.residual == Residual::none),
      residual.is_absent()
          ? std::string("routed_linear: residual is absent, expected one: the problem adds it")
          : "routed_linear: residual is " + to_string(residual.shape) +
                ", expected none: the problem does not say where it is added");
  if (residual.is_absent()) return;
  p.residual_row_stride = read_routed_outputs(kRoutedLinearName, "residual", residual, p.scatters,
                                              p.num_rows, p.out_features);
  require_dtype(kRoutedLinearName, "residual", residual, p.dtype);
}

void check_routed_memory(const RoutedLinearArguments& arguments) {
  const ConstTensorView y = arguments.y;
  require_device(kRoutedLinearName, "y", y, arguments.x.device);
  const auto check = [&](std::string_view name, const ConstTensorView& input) {
    require_apart(kRoutedLinearName, name, input, y);
  };
  check("x", arguments.x);
  check("weight", arguments.weight);
  check("bias", arguments.bias);
  check("scale", arguments.scale);
  if (!is_same_view(arguments.residual, y)) check("residual", arguments.residual);
  check("gates", arguments.gates);
  check("first_rows", arguments.first_rows);
  check("order", arguments.order);
}

}  // namespace

RoutedLinearProblem describe_routed_linear(const RoutedLinearArguments& arguments,
                                           const RoutedLinearProblem& like) {
  RoutedLinearProblem p;
  p.allow_tf32 = like.allow_tf32;
  p.gathers = like.gathers, p.scatters = like.scatters;
  p.epilogue.activation = like.epilogue.activation;
  p.epilogue.alpha = like.epilogue.alpha;
  p.dtype = arguments.x.dtype;

  if (is_quantized(like)) {
    describe_routed_blobs(arguments.weight, like, p);
  } else {
    describe_routed_weight(arguments.weight, p);
    require_dtype(kRoutedLinearName, "weight", arguments.weight, p.dtype);
  }
  const RoutedRows rows = read_routed_rows(
      kRoutedLinearName,
      {arguments.x, arguments.y, arguments.gates, arguments.first_rows, arguments.order},
      {p.num_members, p.in_features, p.out_features, p.dtype, p.gathers, p.scatters, like.choices});
  p.num_rows = rows.num_rows, p.choices = rows.choices, p.has_gates = rows.has_gates;
  p.x_row_stride = rows.x_row_stride, p.y_row_stride = rows.y_row_stride;
  describe_routed_parameters(arguments, p);
  describe_routed_residual(arguments.residual, like, p);
  check_routed_memory(arguments);
  return complete_routed_linear_problem(p);
}

}  // namespace wide
