// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// x, y [rows, members, features]; strides in elements.
struct SoftmaxParams {
  const void* x = nullptr;
  void* y = nullptr;  ///< may be x
  int64_t num_members = 0, rows = 0, features = 0;
  int64_t x_row_stride = 0, x_member_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  bool is_log = false;
};

/// y = softmax(x) or log softmax(x) over the features, all members in one launch.
cudaError_t launch_softmax_wide(Dtype dtype, const SoftmaxParams& params, cudaStream_t stream);

}  // namespace wide::kernels
