// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members is read off the weights, the rows off the routing,
// widths are `like`'s; the others must fit.
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/fused/mlp_weights.hpp"
#include "host/fused/routed_mlp_problem.hpp"

namespace wide {

namespace {

void require_axes(std::string_view argument, const ConstTensorView& view, int rank,
                  std::string_view axes) {
  const auto name = [&] { return "routed_mlp: " + std::string(argument); };
  WIDE_REQUIRE(!view.is_absent(), name() + " is absent, expected " + std::string(axes));
  WIDE_REQUIRE(view.rank() == rank,
               name() + " is " + to_string(view.shape) + ", expected " + std::string(axes));
  WIDE_REQUIRE(view.shape.back() <= 1 || view.strides.back() == 1,
               name() + " has strides " + to_string(view.strides) +
                   ", expected the last axis contiguous: stride 1");
}

/// A vector of the routing, or the gates.
void require_numbers(std::string_view argument, const ConstTensorView& view, Dtype dtype,
                     std::string_view axes) {
  require_axes(argument, view, 1, axes);
  require_dtype(kRoutedMlpName, argument, view, dtype);
}

/// From row to row. 0 would mean "packed" in a problem.
int64_t row_step_of(std::string_view argument, const ConstTensorView& view) {
  WIDE_REQUIRE(view.strides[0] != 0 || view.shape[0] <= 1,
               "routed_mlp: " + std::string(argument) + " has strides " + to_string(view.strides) +
                   ", expected places of their own: a first stride > 0");
  return view.strides[0];
}

/// The part of a problem that operands show.
struct RoutedMlpOperands {
  int64_t num_members = 1, num_rows = 0, choices = 1;
  bool has_gates = false;
  int64_t x_row_stride = 0, y_row_stride = 0, weights_member_stride = 0;
  friend bool operator==(const RoutedMlpOperands&, const RoutedMlpOperands&) = default;
};

/// Its rows show how often they are read.
void read_x(const ConstTensorView& x, const RoutedMlpProblem& like, RoutedMlpOperands& p) {
  const std::string_view axes =
      like.gathers ? "[R / K, in], R = order's rows" : "[R, in], R = order's rows";
  require_axes("x", x, 2, axes);
  const int64_t rows = x.shape[0], all = p.num_rows, in = like.widths.front();
  const bool fits = like.gathers && all > 0 ? rows > 0 && all % rows == 0 : rows == all;
  WIDE_REQUIRE(fits && x.shape[1] == in, "routed_mlp: x is " + to_string(x.shape) + ", expected " +
                                             std::string(axes) + " = " + std::to_string(all) +
                                             ", in = " + std::to_string(in));
  p.choices = !like.gathers ? 1 : all == 0 ? like.choices : all / rows;
  p.x_row_stride = row_step_of("x", x);
}

void check_memory(const RoutedMlpArguments& arguments) {
  const Device device = arguments.x.device;
  require_device(kRoutedMlpName, "y", arguments.y, device);
  for (const auto& [name, input] : {std::pair{"x", &arguments.x},
                                    {"weights", &arguments.weights},
                                    {"gates", &arguments.gates},
                                    {"first_rows", &arguments.first_rows},
                                    {"order", &arguments.order}}) {
    if (input->is_absent()) continue;
    require_device(kRoutedMlpName, name, *input, device);
    WIDE_REQUIRE(!may_overlap(*input, arguments.y), "routed_mlp: y shares addresses with " +
                                                        std::string(name) +
                                                        ", expected memory of its own");
  }
}

/// Of x's dtype, which is `like`'s, as `mlp` is its networks. Allocates nothing except for
/// messages.
RoutedMlpOperands read_operands(const RoutedMlpArguments& arguments, const RoutedMlpProblem& like,
                                const MlpProblem& mlp) {
  RoutedMlpOperands p;
  const MlpWeights weights = read_mlp_weights(kRoutedMlpName, arguments.weights, mlp);
  p.num_members = weights.num_members;
  p.weights_member_stride = weights.member_stride;
  require_numbers("order", arguments.order, Dtype::int32, "[R]");
  p.num_rows = arguments.order.shape[0];
  require_numbers("first_rows", arguments.first_rows, Dtype::int32, "[num_members + 1]");
  require_shape(kRoutedMlpName, "first_rows", arguments.first_rows, "[num_members + 1]",
                {p.num_members + 1});
  read_x(arguments.x, like, p);
  p.has_gates = !arguments.gates.is_absent();
  if (p.has_gates) {
    require_numbers("gates", arguments.gates, Dtype::fp32, "[R]");
    require_shape(kRoutedMlpName, "gates", arguments.gates, "[R]", {p.num_rows});
  }
  require_axes("y", arguments.y, 2, "[R, out]");
  require_dtype(kRoutedMlpName, "y", arguments.y, like.dtype);
  require_shape(kRoutedMlpName, "y", arguments.y, "[R, out]", {p.num_rows, like.widths.back()});
  p.y_row_stride = row_step_of("y", arguments.y);
  check_memory(arguments);
  return p;
}

}  // namespace

RoutedMlpProblem describe_routed_mlp(const RoutedMlpArguments& arguments,
                                     const RoutedMlpProblem& like) {
  RoutedMlpProblem p = like;
  p.dtype = arguments.x.dtype;
  const RoutedMlpOperands operands = read_operands(arguments, p, mlp_of(p));
  p.num_members = operands.num_members;
  p.num_rows = operands.num_rows;
  p.choices = operands.choices;
  p.has_gates = operands.has_gates;
  p.x_row_stride = operands.x_row_stride;
  p.y_row_stride = operands.y_row_stride;
  p.weights_member_stride = operands.weights_member_stride;
  return complete_routed_mlp_problem(std::move(p));
}

void require_same_routed_mlp_operands(const RoutedMlpArguments& arguments,
                                      const RoutedMlpProblem& plan, const MlpProblem& mlp) {
  const RoutedMlpOperands expected{plan.num_members,
                                   plan.num_rows,
                                   plan.choices,
                                   plan.has_gates,
                                   plan.x_row_stride,
                                   plan.y_row_stride,
                                   plan.weights_member_stride};
  if (arguments.x.dtype == plan.dtype && read_operands(arguments, plan, mlp) == expected) return;
  require_same_routed_mlp_problem(describe_routed_mlp(arguments, plan), plan);
}

}  // namespace wide
