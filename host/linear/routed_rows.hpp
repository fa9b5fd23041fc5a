// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What primitives of routed rows have in common: x, y, gates and the routing, each with a row or a
// number for each row of the batch. Messages begin with the primitive's name.
#pragma once

#include <cstdint>
#include <string_view>

#include "wide/tensor.hpp"

namespace wide {

/// Throws for what R, gathers and K may not be.
void check_routed_rows(std::string_view primitive, int64_t num_rows, bool gathers, int64_t choices);

/// Throws where a tensor is absent, has another rank, or its last axis is not contiguous.
void require_routed_axes(std::string_view primitive, std::string_view argument,
                         const ConstTensorView& view, int rank, std::string_view axes);

/// Along the first axis. 0 would mean "packed" in a problem: refused.
int64_t require_step(std::string_view primitive, std::string_view argument,
                     const ConstTensorView& view);

struct RoutedOperands {
  const ConstTensorView &x, &y, &gates, &first_rows, &order;
};

/// What they are to fit.
struct RoutedShape {
  int64_t num_members, in, out;
  Dtype dtype;  ///< of y; x's is its caller's
  bool gathers, scatters;
  int64_t choices;  ///< K where there are no rows to show it
};

/// From one row of y or a residual to the next: of [R, out], or where it scatters also of [B,
/// K*out], contiguous. Throws where it does not fit.
int64_t read_routed_outputs(std::string_view primitive, std::string_view argument,
                            const ConstTensorView& view, bool scatters, int64_t num_rows,
                            int64_t out);

/// What they show of a problem.
struct RoutedRows {
  int64_t num_rows = 0, choices = 1;
  bool has_gates = false;
  int64_t x_row_stride = 0, y_row_stride = 0;
  friend bool operator==(const RoutedRows&, const RoutedRows&) = default;
};

/// Throws where they do not fit. Allocates nothing except for messages.
RoutedRows read_routed_rows(std::string_view primitive, const RoutedOperands& operands,
                            const RoutedShape& shape);

/// Throws where order or x, by which the others are measured, is not of the plan's R rows and K, or
/// x of its dtype.
void require_plan_routed_rows(std::string_view primitive, const ConstTensorView& x,
                              const ConstTensorView& order, const RoutedRows& plan, int64_t in,
                              Dtype dtype);

/// Throws where an input that is there is on another device than `y`, or shares memory with it.
void require_apart(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& input, const ConstTensorView& y);

}  // namespace wide
