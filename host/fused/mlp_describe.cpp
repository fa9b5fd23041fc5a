// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members is read off the weights, widths are `like`'s; x, y and
// the weights must fit them.
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/text.hpp"
#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_weights.hpp"

namespace wide {

namespace {

/// The part of a problem that operands show.
struct MlpOperands {
  int64_t num_members = 1, batch = 0;
  RowStrides x{}, y{};
  int64_t weights_member_stride = 0;
  friend bool operator==(const MlpOperands&, const MlpOperands&) = default;
};

MemberRows rows_of(std::string_view argument, const ConstTensorView& view, Dtype dtype,
                   int64_t num_members, bool is_shared, int64_t features) {
  WIDE_REQUIRE(view.rank() == 2 || view.rank() == 3,
               "mlp: " + std::string(argument) + " is " +
                   (view.is_absent() ? "absent" : to_string(view.shape)) + ", expected " +
                   (is_shared ? "shared_input: [B, in] or [B, T, in]"
                              : "[B, N*features], [B, T, N*features] or [B, N, features]"));
  require_dtype(kMlpName, argument, view, dtype);
  const MemberRows rows = is_shared ? shared_rows(kMlpName, argument, view, features)
                                    : member_rows(kMlpName, argument, view, num_members, features);
  WIDE_REQUIRE(rows.strides != RowStrides{},
               "mlp: " + std::string(argument) + " has strides " + to_string(view.strides) +
                   ", expected rows or members that do not all start at one place");
  return rows;
}

/// Of x's dtype, which is `like`'s. Allocates nothing except for messages.
MlpOperands read_operands(const MlpArguments& arguments, const MlpProblem& like) {
  MlpOperands p;
  const MlpWeights weights = read_mlp_weights(kMlpName, arguments.weights, like);
  p.num_members = weights.num_members;
  p.weights_member_stride = weights.member_stride;
  const MemberRows x = rows_of("x", arguments.x, like.dtype, p.num_members, like.shared_input,
                               like.widths.front()),
                   y = rows_of("y", arguments.y, like.dtype, p.num_members, false,
                               like.widths.back());
  p.batch = x.rows;
  p.x = x.strides;
  p.y = y.strides;
  WIDE_REQUIRE(y.rows == p.batch,
               "mlp: y is " + to_string(arguments.y.shape) + " with " + counted(y.rows, "row") +
                   " per member, expected x's rows = " + std::to_string(p.batch));
  const Device device = arguments.x.device;
  require_device(kMlpName, "x", arguments.x, device);
  require_device(kMlpName, "weights", arguments.weights, device);
  require_device(kMlpName, "y", arguments.y, device);
  for (const auto& [name, input] :
       {std::pair{"x", &arguments.x}, {"weights", &arguments.weights}}) {
    require_own_memory(kMlpName, "y", arguments.y, name, *input);
  }
  return p;
}

}  // namespace

MlpProblem describe_mlp(const MlpArguments& arguments, const MlpProblem& like) {
  MlpProblem p = like;
  p.dtype = arguments.x.dtype;
  const MlpOperands operands = read_operands(arguments, p);
  p.num_members = operands.num_members;
  p.batch = operands.batch;
  p.x = operands.x;
  p.y = operands.y;
  p.weights_member_stride = operands.weights_member_stride;
  return complete_mlp_problem(std::move(p));
}

void require_same_mlp_operands(const MlpArguments& arguments, const MlpProblem& plan) {
  const MlpOperands expected{plan.num_members, plan.batch, plan.x, plan.y,
                             plan.weights_member_stride};
  if (arguments.x.dtype == plan.dtype && read_operands(arguments, plan) == expected) return;
  require_same_mlp_problem(describe_mlp(arguments, plan), plan);
}

}  // namespace wide
