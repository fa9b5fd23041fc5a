// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/pointwise.hpp"

namespace wide::kernels {

/// x, y [rows, members, features], slope [members, num_slopes]; strides in elements.
struct PointwiseParams {
  const void* x = nullptr;
  const void* slope = nullptr;  ///< prelu's
  void* y = nullptr;            ///< may be x
  int64_t num_members = 0, rows = 0, features = 0;
  int64_t x_row_stride = 0, x_member_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  int64_t slope_member_stride = 0;
  bool has_slope_per_feature = false;
  float a = 0, b = 0;  ///< slope; alpha; beta and 1 / beta; low and high
};

/// y = function(x), all members in one launch.
cudaError_t launch_pointwise_wide(PointwiseFunction function, Dtype dtype,
                                  const PointwiseParams& params, cudaStream_t stream);

}  // namespace wide::kernels
