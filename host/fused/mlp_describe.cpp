// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members is read off the weights, widths are `like`'s; x, y and
// the weights must fit them.
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/fused/mlp_problem.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "mlp";

void describe_weights(const ConstTensorView& weights, MlpProblem& p) {
  const int64_t elements = mlp_member_elements(p);
  WIDE_REQUIRE(
      weights.rank() == 2 && weights.shape[0] >= 1,
      "mlp: weights is " + (weights.is_absent() ? "absent" : to_string(weights.shape)) +
          ", expected [num_members, elements] with elements = " + std::to_string(elements));
  p.num_members = weights.shape[0];
  require_dtype(kName, "weights", weights, p.dtype);
  require_shape(kName, "weights", weights,
                "[num_members, elements] of widths " + mlp_widths_text(p),
                {p.num_members, elements});
  WIDE_REQUIRE(elements <= 1 || weights.strides[1] == 1,
               "mlp: weights has strides " + to_string(weights.strides) +
                   ", expected the last axis contiguous: stride 1");
  WIDE_REQUIRE(p.num_members == 1 || weights.strides[0] > 0,
               "mlp: weights has strides " + to_string(weights.strides) +
                   ", expected members of their own: a first stride above 0");
  WIDE_REQUIRE(weights.alignment() >= kMlpAlignment,
               "mlp: weights is aligned to " + std::to_string(weights.alignment()) +
                   " bytes, expected " + std::to_string(kMlpAlignment));
  p.weights_member_stride = weights.strides[0];
}

RowStrides rows_of(std::string_view argument, const ConstTensorView& view, const MlpProblem& p,
                   bool is_shared, int64_t features, int64_t& num_rows) {
  WIDE_REQUIRE(view.rank() == 2 || view.rank() == 3,
               "mlp: " + std::string(argument) + " is " +
                   (view.is_absent() ? "absent" : to_string(view.shape)) + ", expected " +
                   (is_shared ? "shared_input: [B, in] or [B, T, in]"
                              : "[B, N*features], [B, T, N*features] or [B, N, features]"));
  require_dtype(kName, argument, view, p.dtype);
  const MemberRows rows = is_shared ? shared_rows(kName, argument, view, features)
                                    : member_rows(kName, argument, view, p.num_members, features);
  WIDE_REQUIRE(rows.strides != RowStrides{},
               "mlp: " + std::string(argument) + " has strides " + to_string(view.strides) +
                   ", expected rows or members that do not all start at one place");
  num_rows = rows.rows;
  return rows.strides;
}

}  // namespace

MlpProblem describe_mlp(const MlpArguments& arguments, const MlpProblem& like) {
  MlpProblem p = like;
  p.dtype = arguments.x.dtype;
  describe_weights(arguments.weights, p);
  p.x = rows_of("x", arguments.x, p, p.shared_input, p.widths.front(), p.batch);
  int64_t y_rows = 0;
  p.y = rows_of("y", arguments.y, p, false, p.widths.back(), y_rows);
  WIDE_REQUIRE(y_rows == p.batch,
               "mlp: y is " + to_string(arguments.y.shape) + " with " + std::to_string(y_rows) +
                   " rows per member, expected x's rows = " + std::to_string(p.batch));
  const Device device = arguments.x.device;
  require_device(kName, "x", arguments.x, device);
  require_device(kName, "weights", arguments.weights, device);
  require_device(kName, "y", arguments.y, device);
  for (const auto& [name, input] :
       {std::pair{"x", &arguments.x}, {"weights", &arguments.weights}}) {
    WIDE_REQUIRE(
        !may_overlap(*input, arguments.y),
        "mlp: y shares addresses with " + std::string(name) + ", expected memory of its own");
  }
  return complete_mlp_problem(std::move(p));
}

}  // namespace wide
