// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/norm/norm_plan.hpp"

#include <cmath>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"

namespace wide {

void require_epsilon(std::string_view primitive, float epsilon) {
  WIDE_REQUIRE(
      epsilon >= 0 && std::isfinite(epsilon),
      name_of(primitive, "epsilon") + " is " + text(epsilon) + ", expected a finite number >= 0");
}

int64_t parameter_stride(std::string_view primitive, const char* argument,
                         const ConstTensorView& view, std::string_view axes, int64_t num_members,
                         int64_t count, Dtype dtype) {
  require_shape(primitive, argument, view, axes, {num_members, count});
  require_dtype(primitive, argument, view, dtype);
  return member_stride(primitive, argument, view);
}

}  // namespace wide
