// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/pointwise/packed_rows.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"

namespace wide {

PackedRows describe_packed_rows(std::string_view primitive, const ConstTensorView& x,
                                const ConstTensorView& y, int64_t num_members, int64_t features) {
  const std::string name(primitive);
  PackedRows p;
  p.num_members = num_members;
  p.features = member_features(primitive, "x", x, num_members, features);
  p.dtype = x.dtype;
  const MemberRows from = member_rows(primitive, "x", x, num_members, p.features);
  p.rows = from.rows;
  p.x = from.strides;
  require_legal_rows(primitive, p);
  const MemberRows to = member_rows(primitive, "y", y, num_members, p.features);
  WIDE_REQUIRE(to.rows == p.rows, name + ": y is " + to_string(y.shape) +
                                      ", expected the rows of x = " + to_string(x.shape));
  require_disjoint_rows(primitive, "y", to, num_members, p.features);
  p.y = to.strides;
  require_dtype(primitive, "y", y, p.dtype);
  require_device(primitive, "x", x, y.device);
  const bool is_in_place = x.data == y.data && p.x == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(x, y),
               name + ": y overlaps x, expected x itself or memory of its own");
  return p;
}

void require_legal_rows(std::string_view primitive, const PackedRows& p) {
  require_at_least(primitive, "num_members", p.num_members, 1);
  require_at_least(primitive, "rows", p.rows, 0);
  require_at_least(primitive, "features", p.features, 0);
  require_float_dtype(primitive, p.dtype);
  (void)checked_bytes({p.rows, p.num_members, p.features}, dtype_bytes(p.dtype));
}

}  // namespace wide
