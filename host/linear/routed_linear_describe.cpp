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

namespace wide {

namespace {

void require_routed_rank(std::string_view argument, const ConstTensorView& view, int rank,
                         std::string_view axes) {
  const auto name = [&] { return "routed_linear: " + std::string(argument); };
  WIDE_REQUIRE(!view.is_absent(), name() + " is absent, expected " + std::string(axes));
  WIDE_REQUIRE(view.rank() == rank,
               name() + " is " + to_string(view.shape) + ", expected " + std::string(axes));
}

void require_contiguous_end(std::string_view argument, const ConstTensorView& view) {
  WIDE_REQUIRE(view.shape.back() <= 1 || view.strides.back() == 1,
               "routed_linear: " + std::string(argument) + " has strides " +
                   to_string(view.strides) + ", expected the last axis contiguous: stride 1");
}

/// Along the first axis. 0 would mean "packed" in a problem.
int64_t step_of(std::string_view argument, const ConstTensorView& view) {
  const bool is_still = view.strides[0] == 0 && view.shape[0] > 1 && view.shape.back() > 0;
  WIDE_REQUIRE(!is_still, "routed_linear: " + std::string(argument) + " has strides " +
                              to_string(view.strides) +
                              ", expected places of their own: a first stride > 0");
  return view.strides[0];
}

/// A vector of the routing, or the gates.
void require_vector(std::string_view argument, const ConstTensorView& view, Dtype dtype,
                    std::string_view axes) {
  require_routed_rank(argument, view, 1, axes);
  require_dtype(kRoutedLinearName, argument, view, dtype);
  require_contiguous_end(argument, view);
}

void describe_routed_weight(const ConstTensorView& weight, RoutedLinearProblem& p) {
  require_routed_rank("weight", weight, 3, "[num_members, out, in]");
  (void)weight.num_elements();  // refuses negative extents and overflow
  WIDE_REQUIRE(weight.shape[0] >= 1, "routed_linear: weight is " + to_string(weight.shape) +
                                         ", expected num_members >= 1 in front");
  require_contiguous_end("weight", weight);
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

/// Its rows show how often they are read.
void describe_routed_x(const ConstTensorView& x, int64_t choices, RoutedLinearProblem& p) {
  const std::string_view axes =
      p.gathers ? "[R / K, in], R = order's rows" : "[R, in], R = order's rows";
  require_routed_rank("x", x, 2, axes);
  const int64_t rows = x.shape[0], all = p.num_rows;
  const bool fits = p.gathers && all > 0 ? rows > 0 && all % rows == 0 : rows == all;
  WIDE_REQUIRE(fits && x.shape[1] == p.in_features,
               "routed_linear: x is " + to_string(x.shape) + ", expected " + std::string(axes) +
                   " = " + std::to_string(all) + ", in = " + std::to_string(p.in_features));
  require_contiguous_end("x", x);
  p.choices = !p.gathers ? 1 : all == 0 ? choices : all / rows;
  p.x_row_stride = step_of("x", x);
}

int64_t describe_routed_outputs(std::string_view argument, const ConstTensorView& view,
                                const RoutedLinearProblem& p) {
  require_shape(kRoutedLinearName, argument, view, "[R, out]", {p.num_rows, p.out_features});
  require_dtype(kRoutedLinearName, argument, view, p.dtype);
  require_contiguous_end(argument, view);
  return step_of(argument, view);
}

void describe_routed_parameters(const RoutedLinearArguments& arguments, RoutedLinearProblem& p) {
  const ConstTensorView &bias = arguments.bias, &scale = arguments.scale;
  p.epilogue.has_bias = !bias.is_absent();
  if (!bias.is_absent()) {
    require_dtype(kRoutedLinearName, "bias", bias, p.dtype);
    require_shape(kRoutedLinearName, "bias", bias, "[num_members, out]",
                  {p.num_members, p.out_features});
    require_contiguous_end("bias", bias);
    p.bias_member_stride = step_of("bias", bias);
  }
  p.epilogue.scale = OutputScale::none;
  if (scale.is_absent()) return;
  require_dtype(kRoutedLinearName, "scale", scale, Dtype::fp32);
  const bool is_per_member = scale.rank() == 2 && scale.shape[1] == 1;
  require_shape(kRoutedLinearName, "scale", scale, "[num_members, 1] or [num_members, out]",
                {p.num_members, is_per_member ? 1 : p.out_features});
  require_contiguous_end("scale", scale);
  p.epilogue.scale = is_per_member ? OutputScale::per_member : OutputScale::per_output;
  p.scale_member_stride = step_of("scale", scale);
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
  p.residual_row_stride = describe_routed_outputs("residual", residual, p);
}

/// In place: every element is read by whoever writes it, before.
bool is_in_place(const ConstTensorView& residual, const ConstTensorView& y) {
  return residual.data == y.data && residual.shape == y.shape && residual.strides == y.strides;
}

void check_routed_memory(const RoutedLinearArguments& arguments) {
  const Device device = arguments.x.device;
  require_device(kRoutedLinearName, "y", arguments.y, device);
  const auto check = [&](const char* name, const ConstTensorView& input) {
    if (input.is_absent()) return;
    require_device(kRoutedLinearName, name, input, device);
    WIDE_REQUIRE(!may_overlap(input, arguments.y), "routed_linear: y shares addresses with " +
                                                       std::string(name) +
                                                       ", expected memory of its own");
  };
  check("x", arguments.x);
  check("weight", arguments.weight);
  check("bias", arguments.bias);
  check("scale", arguments.scale);
  if (!is_in_place(arguments.residual, arguments.y)) check("residual", arguments.residual);
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
  require_vector("order", arguments.order, Dtype::int32, "[R]");
  p.num_rows = arguments.order.shape[0];
  require_vector("first_rows", arguments.first_rows, Dtype::int32, "[num_members + 1]");
  require_shape(kRoutedLinearName, "first_rows", arguments.first_rows, "[num_members + 1]",
                {p.num_members + 1});
  describe_routed_x(arguments.x, like.choices, p);
  describe_routed_parameters(arguments, p);
  p.has_gates = !arguments.gates.is_absent();
  if (p.has_gates) {
    require_vector("gates", arguments.gates, Dtype::fp32, "[R]");
    require_shape(kRoutedLinearName, "gates", arguments.gates, "[R]", {p.num_rows});
  }
  p.y_row_stride = describe_routed_outputs("y", arguments.y, p);
  describe_routed_residual(arguments.residual, like, p);
  check_routed_memory(arguments);
  return complete_routed_linear_problem(p);
}

}  // namespace wide
