// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/linear/routed_rows.hpp"

#include <limits>
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

/// A vector of the routing.
void require_numbers(std::string_view primitive, std::string_view argument,
                     const ConstTensorView& view, Dtype dtype, std::string_view axes) {
  require_routed_axes(primitive, argument, view, 1, axes);
  require_dtype(primitive, argument, view, dtype);
}

/// As they are counted, rows or [B, K] of them: top_k writes the latter.
void require_gates(std::string_view primitive, const ConstTensorView& gates, int64_t num_rows) {
  require_view(primitive, "gates", gates);
  const bool has_axes = gates.rank() == 1 || gates.rank() == 2;
  const ArgumentName name = name_of(primitive, "gates");
  WIDE_REQUIRE(has_axes && gates.num_elements() == num_rows,
               name + " is " + to_string(gates.shape) + ", expected [R] = [" + text(num_rows) +
                   "], or [B, K] of as many");
  WIDE_REQUIRE(gates.is_contiguous(),
               name + " has strides " + to_string(gates.strides) + ", expected contiguous ones");
  require_dtype(primitive, "gates", gates, Dtype::fp32);
}

/// Whether it is [B, K*out] with more than one row of R side by side.
bool is_side_by_side(const ConstTensorView& view, int64_t num_rows, int64_t out) {
  if (view.rank() != 2 || out <= 0 || view.shape[1] <= out || view.shape[1] % out != 0)
    return false;
  const int64_t choices = view.shape[1] / out;
  return num_rows % choices == 0 && view.shape[0] == num_rows / choices;
}

/// Its rows show how often they are read.
void read_routed_x(std::string_view primitive, const ConstTensorView& x, const RoutedShape& shape,
                   RoutedRows& rows) {
  const std::string_view axes =
      shape.gathers ? "[R / K, in], R = order's rows" : "[R, in], R = order's rows";
  require_routed_axes(primitive, "x", x, 2, axes);
  const int64_t own = x.shape[0], all = rows.num_rows;
  const bool fits = shape.gathers && all > 0 ? own > 0 && all % own == 0 : own == all;
  WIDE_REQUIRE(fits && x.shape[1] == shape.in, name_of(primitive, "x") + " is " +
                                                   to_string(x.shape) + ", expected " +
                                                   std::string(axes) + " = " + std::to_string(all) +
                                                   ", in = " + std::to_string(shape.in));
  rows.choices = !shape.gathers ? 1 : all == 0 ? shape.choices : all / own;
  rows.x_row_stride = require_step(primitive, "x", x);
}

}  // namespace

void check_routed_rows(std::string_view primitive, int64_t num_rows, bool gathers,
                       int64_t choices) {
  constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
  require_at_least(primitive, "num_rows", num_rows, 0);
  WIDE_REQUIRE(num_rows <= kMostRows, name_of(primitive, "num_rows") + " is " + text(num_rows) +
                                          ", expected up to 2^31 - 1, as order is int32");
  require_at_least(primitive, "choices", choices, 1);
  WIDE_REQUIRE(gathers || choices == 1,
               name_of(primitive, "choices") + " is " + text(choices) +
                   ", expected 1: it does not gather, every row has one of x");
  WIDE_REQUIRE(num_rows % choices == 0, name_of(primitive, "choices") + " is " + text(choices) +
                                            ", expected a divisor of num_rows = " + text(num_rows));
}

void require_routed_axes(std::string_view primitive, std::string_view argument,
                         const ConstTensorView& view, int rank, std::string_view axes) {
  const ArgumentName name = name_of(primitive, argument);
  WIDE_REQUIRE(!view.is_absent(), name + " is absent, expected " + std::string(axes));
  WIDE_REQUIRE(view.rank() == rank,
               name + " is " + to_string(view.shape) + ", expected " + std::string(axes));
  require_last_axis_contiguous(primitive, argument, view);
}

int64_t require_step(std::string_view primitive, std::string_view argument,
                     const ConstTensorView& view) {
  const bool is_still = view.strides[0] == 0 && view.shape[0] > 1 && view.shape.back() > 0;
  WIDE_REQUIRE(!is_still, name_of(primitive, argument) + " has strides " + to_string(view.strides) +
                              ", expected places of their own: a first stride > 0");
  return view.strides[0];
}

int64_t read_routed_outputs(std::string_view primitive, std::string_view argument,
                            const ConstTensorView& view, bool scatters, int64_t num_rows,
                            int64_t out) {
  if (scatters && is_side_by_side(view, num_rows, out)) {
    require_view(primitive, argument, view);
    WIDE_REQUIRE(view.is_contiguous(),
                 name_of(primitive, argument) + " is " + to_string(view.shape) + " with strides " +
                     to_string(view.strides) + ", expected contiguous ones, as of [R, out]");
    return out;
  }
  require_routed_axes(primitive, argument, view, 2, "[R, out]");
  require_shape(primitive, argument, view, "[R, out]", {num_rows, out});
  return require_step(primitive, argument, view);
}

RoutedRows read_routed_rows(std::string_view primitive, const RoutedOperands& operands,
                            const RoutedShape& shape) {
  const auto& [x, y, gates, first_rows, order] = operands;
  RoutedRows rows;
  require_numbers(primitive, "order", order, Dtype::int32, "[R]");
  rows.num_rows = order.shape[0];
  require_numbers(primitive, "first_rows", first_rows, Dtype::int32, "[num_members + 1]");
  require_shape(primitive, "first_rows", first_rows, "[num_members + 1]", {shape.num_members + 1});
  read_routed_x(primitive, x, shape, rows);
  rows.has_gates = !gates.is_absent();
  if (rows.has_gates) require_gates(primitive, gates, rows.num_rows);
  rows.y_row_stride =
      read_routed_outputs(primitive, "y", y, shape.scatters, rows.num_rows, shape.out);
  require_dtype(primitive, "y", y, shape.dtype);
  return rows;
}

void require_plan_routed_rows(std::string_view primitive, const ConstTensorView& x,
                              const ConstTensorView& order, const RoutedRows& plan, int64_t in,
                              Dtype dtype) {
  if (order.rank() == 1)
    require_plan_extent(primitive, "order", order, 0, "num_rows", plan.num_rows);
  require_plan_dtype(primitive, "x", x, dtype);
  if (x.rank() != 2) return;
  require_plan_extent(primitive, "x", x, 1, "in", in);
  require_plan_extent(primitive, "x", x, 0, plan.choices == 1 ? "num_rows" : "num_rows / choices",
                      plan.num_rows / plan.choices);
}

void require_apart(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& input, const ConstTensorView& y) {
  if (input.is_absent()) return;
  require_device(primitive, argument, input, y.device);
  require_own_memory(primitive, "y", y, argument, input);
}

}  // namespace wide
