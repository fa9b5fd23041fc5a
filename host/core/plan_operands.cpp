// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/plan_operands.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"

namespace wide {

void require_plan_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t row_elements, std::string_view field,
                       int64_t rows) {
  if (view.is_absent() || row_elements == 0) return;
  require_view(primitive, argument, view);
  int axis = view.rank();
  int64_t width = 1;
  while (axis > 0 && width != row_elements) width *= view.shape[--axis];
  if (width != row_elements) return;
  int64_t count = 1;
  while (axis > 0) count *= view.shape[--axis];
  WIDE_REQUIRE(count == rows, name_of(primitive, argument) + " is " + to_string(view.shape) +
                                  " with " + counted(count, "row") + ", expected the plan's " +
                                  text(field) + " = " + text(rows));
}

void require_plan_extent(std::string_view primitive, std::string_view argument,
                         const ConstTensorView& view, int axis, std::string_view field,
                         int64_t extent) {
  const int counted_axis = axis < 0 ? view.rank() + axis : axis;
  if (counted_axis < 0 || counted_axis >= view.rank()) return;
  WIDE_REQUIRE(view.shape[counted_axis] == extent,
               name_of(primitive, argument) + " is " + to_string(view.shape) +
                   ", expected the plan's " + text(field) + " = " + text(extent));
}

void require_plan_shape(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, std::string_view axes, const Shape& shape) {
  if (view.rank() != shape.rank()) return;
  WIDE_REQUIRE(view.shape == shape, name_of(primitive, argument) + " is " + to_string(view.shape) +
                                        ", expected the plan's " + text(axes) + " = " +
                                        to_string(shape));
}

void require_plan_dtype(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, Dtype dtype) {
  if (view.is_absent()) return;
  WIDE_REQUIRE(view.dtype == dtype,
               name_of(primitive, argument) + " is " + std::string(dtype_name(view.dtype)) +
                   ", expected the plan's dtype = " + std::string(dtype_name(dtype)));
}

}  // namespace wide
