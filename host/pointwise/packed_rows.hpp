// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What primitives of this family read off x and y, which are alike: [rows, members, features].
#pragma once

#include <string_view>

#include "host/core/check.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct PackedRows {
  int64_t num_members = 1, rows = 0, features = 0;
  Dtype dtype = Dtype::fp32;
  RowStrides x, y;
};

/// Those of a problem.
template <class Problem>
PackedRows rows_of(const Problem& p) {
  return {p.num_members, p.rows, p.features, p.dtype, p.x, p.y};
}

/// Completes x and y as their views are described.
template <class Problem>
void complete_rows(std::string_view primitive, Problem& p) {
  const RowStrides packed = packed_rows(p.num_members, p.features);
  const auto complete = [&](const char* name, RowStrides& strides) {
    strides = complete_strides(name_of(primitive, name), strides, packed, p.rows, p.num_members,
                               p.features);
  };
  complete("x", p.x);
  complete("y", p.y);
}

/// `features` tells [.., N, D] from [.., N*D] where N divides D; 0: unknown, then it is the
/// latter. Throws invalid_argument where y is not like x, overlaps x without being x, or itself.
PackedRows describe_packed_rows(std::string_view primitive, const ConstTensorView& x,
                                const ConstTensorView& y, int64_t num_members, int64_t features);

/// Sizes and dtype; throws invalid_argument.
void require_legal_rows(std::string_view primitive, const PackedRows& rows);

/// The fields that all of the family have, for the list of fields.
template <class Same, class Problem>
void same_rows(const Same& same, const Problem& got, const Problem& plan) {
  same("rows", got.rows, plan.rows);
  same("features", got.features, plan.features);
  same("dtype", got.dtype, plan.dtype);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("num_members", got.num_members, plan.num_members);
}

}  // namespace wide
