// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From packed operands to the parameters of element-wise kernels.
#pragma once

#include "host/core/pointer.hpp"
#include "host/core/wide_strategy.hpp"
#include "host/pointwise/packed_rows.hpp"
#include "kernels/pointwise/packed_runs.hpp"

namespace wide {

/// Without a second operand.
inline kernels::PackedParams packed_params(const PackedRows& rows, const void* x, void* y) {
  kernels::PackedParams params;
  params.x = x;
  params.y = y;
  params.num_members = rows.num_members;
  params.rows = rows.rows;
  params.features = rows.features;
  params.x_row_stride = rows.x.row;
  params.x_member_stride = rows.x.member;
  params.y_row_stride = rows.y.row;
  params.y_member_stride = rows.y.member;
  return params;
}

/// launch(params, member): for all members at once, or for each by itself. By value: launch may
/// write a member's parameters to where these came from.
template <class Launch>
void launch_members(WideStrategy strategy, Dtype dtype, kernels::PackedParams params,
                    const Launch& launch) {
  if (strategy == WideStrategy::wide) return launch(params, int64_t{0});
  const int64_t size = dtype_bytes(dtype);
  for (int64_t n = 0; n < params.num_members; ++n) {
    kernels::PackedParams one = params;
    one.num_members = 1;
    one.x = advanced(params.x, n * params.x_member_stride, size);
    one.y = advanced(params.y, n * params.y_member_stride, size);
    one.second = advanced(params.second, n * params.second_member_stride, size);
    launch(one, n);
  }
}

}  // namespace wide
