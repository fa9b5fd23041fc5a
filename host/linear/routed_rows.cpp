// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/linear/routed_rows.hpp"

#include <limits>
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"

namespace wide {

namespace {

/// A vector of the routing, or the gates.
void require_numbers(std::string_view primitive, std::string_view argument,
                     const ConstTensorView& view, Dtype dtype, std::string_view axes) {
  require_routed_axes(primitive, argument, view, 1, axes);
  require_dtype(primitive, argument, view, dtype);
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
  if (rows.has_gates) {
    require_numbers(primitive, "gates", gates, Dtype::fp32, "[R]");
    require_shape(primitive, "gates", gates, "[R]", {rows.num_rows});
  }
  require_routed_axes(primitive, "y", y, 2, "[R, out]");
  require_dtype(primitive, "y", y, shape.dtype);
  require_shape(primitive, "y", y, "[R, out]", {rows.num_rows, shape.out});
  rows.y_row_stride = require_step(primitive, "y", y);
  return rows;
}

void require_apart(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& input, const ConstTensorView& y) {
  if (input.is_absent()) return;
  require_device(primitive, argument, input, y.device);
  require_own_memory(primitive, "y", y, argument, input);
}

}  // namespace wide
