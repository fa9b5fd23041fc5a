// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members, in and out are read off the weight, the one operand
// whose shape has each of them by itself; the others must fit.
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/text.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_weight.hpp"

namespace wide {

namespace {

constexpr std::string_view kLinearName = "linear";

void require_rank(std::string_view argument, const ConstTensorView& view, int low, int high,
                  std::string_view expected) {
  WIDE_REQUIRE(!view.is_absent(), "linear: " + std::string(argument) + " is absent, expected " +
                                      std::string(expected));
  WIDE_REQUIRE(view.rank() >= low && view.rank() <= high,
               "linear: " + std::string(argument) + " is " + to_string(view.shape) + ", expected " +
                   std::string(expected));
}

/// Rows that all start at one address would mean "packed" in a problem.
void require_steps(std::string_view argument, const ConstTensorView& view, int64_t features,
                   const RowStrides& strides) {
  WIDE_REQUIRE(features == 0 || strides.row != 0 || strides.member != 0,
               "linear: " + std::string(argument) + " has strides " + to_string(view.strides) +
                   ", expected rows or members that do not all start at one place");
}

void describe_x(const ConstTensorView& x, LinearProblem& problem) {
  const int64_t in = problem.in_features;
  MemberRows rows;
  if (problem.shared_input) {
    require_rank("x", x, 2, 3, "shared_input: [B, in] or [B, T, in]");
    rows = shared_rows(kLinearName, "x", x, in);
  } else {
    require_rank("x", x, 2, 3, "[B, N*in], [B, T, N*in] or [B, N, in]");
    rows = member_rows(kLinearName, "x", x, problem.num_members, in);
  }
  require_steps("x", x, in, rows.strides);
  problem.batch = rows.rows;
  problem.x = rows.strides;
}

void describe_weight(const ConstTensorView& weight, LinearProblem& problem) {
  require_rank("weight", weight, 3, 3, "[num_members, out, in]");
  require_view(kLinearName, "weight", weight);
  WIDE_REQUIRE(weight.shape[0] >= 1, "linear: weight is " + to_string(weight.shape) +
                                         ", expected num_members >= 1 in front");
  require_last_axis_contiguous(kLinearName, "weight", weight);
  problem.num_members = weight.shape[0];
  problem.out_features = weight.shape[1];
  problem.in_features = weight.shape[2];
  const int64_t in = problem.in_features, out = problem.out_features;
  problem.weight.row = out <= 1 ? in : weight.strides[1];
  problem.weight.member = problem.num_members == 1 ? out * in : weight.strides[0];
  require_steps("weight", weight, in * out, problem.weight);
}

/// The blobs show neither in nor out: `like` gives them.
void describe_blobs(const ConstTensorView& weight, const LinearProblem& like,
                    LinearProblem& problem) {
  problem.weight_format = like.weight_format;
  problem.group_size = like.group_size;
  problem.allow_rounded_weights = like.allow_rounded_weights;
  problem.out_features = like.out_features;
  problem.in_features = like.in_features;
  problem.weight = describe_quantized_weight(kLinearName, weight, linear_quantized_weight(problem));
  problem.num_members = weight.shape[0];
}

void describe_bias(const ConstTensorView& bias, LinearProblem& problem) {
  problem.epilogue.has_bias = !bias.is_absent();
  problem.bias_member_stride = 0;
  if (bias.is_absent()) return;
  require_dtype(kLinearName, "bias", bias, *problem.y_dtype);
  require_shape(kLinearName, "bias", bias, "[num_members, out]",
                {problem.num_members, problem.out_features});
  require_last_axis_contiguous(kLinearName, "bias", bias);
  WIDE_REQUIRE(problem.num_members == 1 || problem.out_features == 0 || bias.strides[0] != 0,
               "linear: bias has strides " + to_string(bias.strides) +
                   ", expected one vector per member: stride > 0");
  problem.bias_member_stride = bias.strides[0];
}

void describe_scale(const ConstTensorView& scale, LinearProblem& problem) {
  problem.epilogue.scale = OutputScale::none;
  problem.scale_member_stride = 0;
  if (scale.is_absent()) return;
  require_dtype(kLinearName, "scale", scale, Dtype::fp32);
  const bool is_per_member = scale.rank() == 2 && scale.shape[1] == 1;
  require_shape(kLinearName, "scale", scale, "[num_members, 1] or [num_members, out]",
                {problem.num_members, is_per_member ? 1 : problem.out_features});
  require_last_axis_contiguous(kLinearName, "scale", scale);
  WIDE_REQUIRE(problem.num_members == 1 || problem.out_features == 0 || scale.strides[0] != 0,
               "linear: scale has strides " + to_string(scale.strides) +
                   ", expected factors of its own per member: stride > 0");
  problem.epilogue.scale = is_per_member ? OutputScale::per_member : OutputScale::per_output;
  problem.scale_member_stride = scale.strides[0];
}

/// Rows of outputs or residuals.
RowStrides describe_outputs(std::string_view argument, const ConstTensorView& view,
                            const LinearProblem& problem) {
  require_rank(argument, view, 2, 3, "[B, N*out], [B, T, N*out] or [B, N, out]");
  const MemberRows rows =
      member_rows(kLinearName, argument, view, problem.num_members, problem.out_features);
  WIDE_REQUIRE(rows.rows == problem.batch,
               "linear: " + std::string(argument) + " is " + to_string(view.shape) + " with " +
                   counted(rows.rows, "row") +
                   " per member, expected x's rows = " + std::to_string(problem.batch));
  require_steps(argument, view, problem.out_features, rows.strides);
  return rows.strides;
}

void describe_residual(const LinearArguments& arguments, const LinearProblem& like,
                       LinearProblem& problem) {
  const ConstTensorView& residual = arguments.residual;
  problem.epilogue.residual = like.epilogue.residual;
  WIDE_REQUIRE(residual.is_absent() == (problem.epilogue.residual == Residual::none),
               residual.is_absent()
                   ? std::string("linear: residual is absent, expected one: the problem adds it")
                   : "linear: residual is " + to_string(residual.shape) +
                         ", expected none: the problem does not say where it is added");
  if (residual.is_absent()) return;
  require_dtype(kLinearName, "residual", residual, *problem.y_dtype);
  problem.residual = describe_outputs("residual", residual, problem);
}

void describe_y(const ConstTensorView& y, LinearProblem& problem) {
  problem.y = describe_outputs("y", y, problem);
}

}  // namespace

LinearProblem describe_linear(const LinearArguments& arguments, const LinearProblem& like) {
  LinearProblem problem;
  problem.shared_input = like.shared_input;
  problem.allow_tf32 = like.allow_tf32;
  problem.epilogue.activation = like.epilogue.activation;
  problem.epilogue.alpha = like.epilogue.alpha;
  problem.dtype = arguments.x.dtype;
  problem.y_dtype = is_fp8(problem.dtype) ? arguments.y.dtype : problem.dtype;

  if (is_quantized(like)) {
    describe_blobs(arguments.weight, like, problem);
  } else {
    describe_weight(arguments.weight, problem);
  }
  describe_x(arguments.x, problem);
  if (!is_quantized(problem)) require_dtype(kLinearName, "weight", arguments.weight, problem.dtype);
  require_dtype(kLinearName, "y", arguments.y, *problem.y_dtype);
  describe_bias(arguments.bias, problem);
  describe_scale(arguments.scale, problem);
  describe_residual(arguments, like, problem);
  describe_y(arguments.y, problem);

  const Device device = arguments.x.device;
  require_device(kLinearName, "x", arguments.x, device);
  require_device(kLinearName, "weight", arguments.weight, device);
  if (!arguments.bias.is_absent()) require_device(kLinearName, "bias", arguments.bias, device);
  if (!arguments.scale.is_absent()) require_device(kLinearName, "scale", arguments.scale, device);
  if (!arguments.residual.is_absent()) {
    require_device(kLinearName, "residual", arguments.residual, device);
  }
  require_device(kLinearName, "y", arguments.y, device);
  const auto require_apart = [&](const char* name, const ConstTensorView& input) {
    require_own_memory(kLinearName, "y", arguments.y, name, input);
  };
  require_apart("x", arguments.x);
  require_apart("weight", arguments.weight);
  require_apart("bias", arguments.bias);
  require_apart("scale", arguments.scale);
  if (!is_same_view(arguments.residual, arguments.y)) {
    require_apart("residual", arguments.residual);
  }
  return complete_linear_problem(problem);
}

}  // namespace wide
