// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launcher of the epilogue after a GEMM that only produces sums, a vendor's or one with k divided:
// scale, bias, residual, activation, rounding.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/linear/linear_params.hpp"
#include "wide/dtype.hpp"
#include "wide/strides.hpp"

namespace wide::kernels {

struct LinearEpilogueParams {
  const float* sums;  ///< [rows, num_members, features]; may be y itself (fp32); null: zeros
  void* y;            ///< [rows, num_members, features]
  int64_t rows, num_members, features;
  RowStrides sums_strides, y_strides;
  /// This many planes of sums, this far apart, are added up in order.
  int64_t num_planes = 1, plane_stride = 0;
  LinearEpilogue epilogue;
};

/// y by `epilogue`, rounded once to the dtype of bias, residual and y. Nothing is launched where y
/// is empty. cudaErrorInvalidConfiguration for more than 2^39 groups of four features or 2^30
/// members; cudaErrorInvalidValue for a dtype other than fp32, fp16, bf16.
cudaError_t launch_linear_epilogue(LinearEpilogueParams params, Dtype dtype, cudaStream_t stream);

}  // namespace wide::kernels
