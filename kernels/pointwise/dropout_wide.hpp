// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/pointwise/packed_runs.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

struct DropoutParams {
  PackedParams packed;                   ///< no second operand
  const int64_t* seeds = nullptr;        ///< [members, 2]: seed, sequence
  const float* probabilities = nullptr;  ///< [members]
  int64_t seed_member_stride = 0, probability_member_stride = 0;
};

/// y = x / (1 - p) or 0, all members in one launch.
cudaError_t launch_dropout_wide(Dtype dtype, const DropoutParams& params, cudaStream_t stream);

}  // namespace wide::kernels
