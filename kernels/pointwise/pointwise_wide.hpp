// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/pointwise/packed_runs.hpp"
#include "wide/dtype.hpp"
#include "wide/pointwise_function.hpp"

namespace wide::kernels {

struct PointwiseParams {
  PackedParams packed;  ///< the second operand: prelu's slopes
  float a = 0, b = 0;   ///< slope; alpha; beta and 1 / beta; low and high
};

/// y = function(x), all members in one launch.
cudaError_t launch_pointwise_wide(PointwiseFunction function, Dtype dtype,
                                  const PointwiseParams& params, cudaStream_t stream);

}  // namespace wide::kernels
