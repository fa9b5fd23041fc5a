// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Each check has one message; the names are the primitive's.
#include "host/norm/norm_plan.hpp"

#include <cmath>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"

namespace wide {

namespace {

std::string text(std::string_view primitive, std::string_view what) {
  return std::string(primitive) + ": " + std::string(what);
}

}  // namespace

void require_epsilon(std::string_view primitive, float epsilon) {
  WIDE_REQUIRE(
      epsilon >= 0 && std::isfinite(epsilon),
      text(primitive, "epsilon is ") + std::to_string(epsilon) + ", expected a finite number >= 0");
}

int64_t parameter_stride(std::string_view primitive, const char* argument,
                         const ConstTensorView& view, std::string_view axes, int64_t num_members,
                         int64_t count, Dtype dtype) {
  require_shape(primitive, argument, view, axes, {num_members, count});
  require_dtype(primitive, argument, view, dtype);
  WIDE_REQUIRE(count <= 1 || view.strides[1] == 1, text(primitive, argument) + " has strides " +
                                                       to_string(view.strides) +
                                                       ", expected a last stride of 1");
  WIDE_REQUIRE(num_members <= 1 || count == 0 || view.strides[0] > 0,
               text(primitive, argument) + " has strides " + to_string(view.strides) +
                   ", expected members of their own: a first stride above 0");
  return num_members <= 1 ? count : view.strides[0];
}

}  // namespace wide
