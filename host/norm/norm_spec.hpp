// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the norms' entries in the catalogue have in common.
#pragma once

#include "host/plan_workload.hpp"

namespace wide::catalog {

/// Axes that every norm has, after those of its sizes.
inline AxisInfo affine_axis() {
  return {"affine", "gamma and beta", "yes", {"yes", "no"}, 0};
}
inline AxisInfo offset_axis() {
  return {"offset", "mean of x, which costs a bad kernel its accuracy", int64_t{0}, {}, 0};
}

/// The values of x.
inline Distribution around_offset(const Case& point) {
  const auto offset = static_cast<double>(point.integer("offset"));
  return Distribution::uniform(offset - 1, offset + 1);
}

inline AxisInfo residual_axis() {
  return {"residual",
          "whether one is added first, and the sum stored",
          "no",
          {"no", "yes", "stored"},
          0};
}

}  // namespace wide::catalog
